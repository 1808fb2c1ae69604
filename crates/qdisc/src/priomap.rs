//! From a packet's TOS byte over Linux' priority to one of several bands.

use weir_core::Packet;

use crate::linux::priority_of;
use crate::tc::{Declared, SpecError, as_words, words};

/// The band of each priority.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrioMap([u8; PRIORITIES]);

impl PrioMap {
    /// The map that `words`, the value of [`PRIOMAP`], say of `owner`, a discipline with `bands` bands.
    pub fn read(owner: &str, words: &[String], bands: u8) -> Result<Self, SpecError> {
        let bad = || {
            let allowed = format!("write {PRIORITIES} numbers from 0 to {}", bands - 1);
            SpecError::bad(owner, "priomap", &words.join(" "), &allowed)
        };
        if words.len() != PRIORITIES {
            return Err(bad());
        }
        let mut map = [0; PRIORITIES];
        for (band, word) in map.iter_mut().zip(words) {
            *band = word.parse().ok().filter(|&number| number < bands).ok_or_else(bad)?;
        }
        Ok(Self(map))
    }

    /// The map of a discipline that puts all priorities into `band`.
    pub const fn all(band: u8) -> Self {
        Self([band; PRIORITIES])
    }

    /// This map for `owner`, a discipline with `bands` bands, with the bands that `words`, the value of
    /// [`PRIOMAP`], say for the first priorities.
    pub fn overwritten(
        mut self,
        owner: &str,
        words: &[String],
        bands: u8,
    ) -> Result<Self, SpecError> {
        let bad = |word: &str| {
            let allowed = format!("write up to {PRIORITIES} numbers from 0 to {}", bands - 1);
            SpecError::bad(owner, "priomap", word, &allowed)
        };
        for (band, word) in self.0.iter_mut().zip(words) {
            *band = word.parse().map_err(|_| bad(word))?;
        }
        match self.0.iter().find(|&&band| band >= bands) {
            Some(band) => Err(bad(&band.to_string())),
            None => Ok(self),
        }
    }

    /// The band of `packet`: of the lowest bits of its priority (`TC_PRIO_MAX`).
    pub fn band_of(&self, packet: &Packet) -> usize {
        self.band_of_priority(priority_of(packet) as usize % PRIORITIES)
    }

    /// The band of Linux' priority `priority`.
    pub fn band_of_priority(&self, priority: usize) -> usize {
        usize::from(self.0[priority])
    }
}

impl Default for PrioMap {
    /// `sch_default_prio2band` of `net/sched/sch_generic.c`.
    fn default() -> Self {
        Self([1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    }
}

/// Bands by priority, for disciplines with three of them.
pub(crate) const PRIOMAP: Declared<Vec<String>> = words("up to 16 numbers", takes, as_words)
    .default("1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1")
    .means("band of each of Linux' priorities 0 to 15");

fn takes(behind: &[&str]) -> usize {
    let number = |word: &&&str| word.starts_with(|c: char| c.is_ascii_digit());
    behind.iter().take(PRIORITIES).take_while(number).count()
}

/// `TC_PRIO_MAX` + 1.
const PRIORITIES: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_delay_goes_first_and_expedited_forwarding_does_not() {
        let band = |tos: u8| {
            PrioMap::default().band_of_priority(usize::from(crate::linux::priority_of_tos(tos)))
        };
        assert_eq!(band(0x10), 0, "low delay");
        assert_eq!(band(0x08), 2, "bulk");
        for (dscp, name) in [(0, "BE"), (8, "CS1"), (40, "CS5")] {
            assert_eq!(band(dscp << 2), 1, "{name}");
        }
        assert_eq!(band(46 << 2), 1, "EF is 0xb8, whose TOS bits are 0x18: interactive bulk");
    }
}
