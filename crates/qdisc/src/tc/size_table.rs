//! `stab`: what a packet's length is to the disciplines of a port (tc-stab(8)).
//!
//! `tc` computes a table of lengths, the kernel looks packets up in it as they come in: iproute2
//! `tc/tc_core.c` (`tc_calc_size_table`), Linux `net/sched/sch_api.c` (`__qdisc_calculate_pkt_len`).

use super::{Placed, Record, SpecError, either, integer, number, params, shortened};
use crate::Device;

/// A size table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeTable {
    /// Bytes added to a packet's length before it is looked up.
    pub overhead: i32,
    /// The least that a slot of the table says.
    pub mpu: u32,
    /// The longest packet that the table is made for; 0 where there is none.
    pub mtu: u32,
    /// 0 where no `linklayer` was written, 1 for Ethernet, 2 for ATM (`TC_LINKLAYER_*`).
    pub link_layer: u8,
    /// Each slot stands for 2 to the power of this many lengths.
    pub cell_log: u8,
    /// Slots say lengths in units of 2 to the power of this.
    pub size_log: u8,
    /// Added to a length before its slot is looked up.
    pub cell_align: i16,
    /// The slots; none where only the overhead counts.
    pub slots: Vec<u16>,
}

impl SizeTable {
    /// Reads the words behind `stab`.
    ///
    /// # Errors
    /// If a word is none of a size table, or a value is out of range.
    pub(super) fn read(words: &[&str]) -> Result<Self, SpecError> {
        if words.is_empty() {
            return Err(SpecError::new(format!("`stab` needs one of {}", names())));
        }
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let options: SizeTableOptions = super::read("stab", &words, &Device::default())?;
        let SizeTableOptions { mtu, tsize, mpu, overhead, cells } = options;
        let link_layer = if cells.value { ATM } else { u8::from(cells.is_written()) };
        Ok(Self::new(overhead, mpu, link_layer, [mtu, tsize]))
    }

    /// A table that takes `bytes` off every packet and nothing else.
    #[must_use]
    pub fn shorter(bytes: u32) -> Self {
        Self::new(-(bytes as i32), 0, 0, [0; 2])
    }

    /// The table as `tc` computes it. Where neither cells nor a least length change anything, there is
    /// none.
    fn new(overhead: i32, mpu: u32, link_layer: u8, [mtu, tsize]: [u32; 2]) -> Self {
        let plain = Self {
            overhead,
            mpu,
            mtu: 0,
            link_layer,
            cell_log: 0,
            size_log: 0,
            cell_align: 0,
            slots: Vec::new(),
        };
        if link_layer != ATM && mpu == 0 {
            return plain;
        }
        let mtu = if mtu == 0 { DEFAULT_MTU } else { mtu };
        let tsize = if tsize == 0 { DEFAULT_SLOTS } else { tsize };
        let cell_log = (0..).find(|log| mtu >> log < tsize).expect("0 is below every size");
        let of_slot = |slot: u32| {
            let most = (u64::from(slot) + 1) << cell_log;
            let len = most.max(u64::from(mpu));
            if link_layer == ATM { len.div_ceil(CELL_PAYLOAD) * CELL } else { len }
        };
        let size_log =
            (0..).find(|log| of_slot(tsize - 1) >> log <= u64::from(u16::MAX)).expect("it shrinks");
        let slots = (0..tsize).map(|slot| (of_slot(slot) >> size_log) as u16).collect();
        Self { mtu, cell_log, size_log, cell_align: -1, slots, ..plain }
    }

    /// Bytes that a packet of `len` bytes, its Ethernet header included, counts as: at least one.
    #[must_use]
    pub fn length_of(&self, len: u32) -> u32 {
        let len = i64::from(len) + i64::from(self.overhead);
        if self.slots.is_empty() {
            return len.max(1) as u32;
        }
        let slot = (len + i64::from(self.cell_align)).max(0) as usize >> self.cell_log;
        let at = |place: usize| u64::from(self.slots[place]);
        let count = self.slots.len();
        let units = match self.slots.get(slot) {
            Some(&units) => u64::from(units),
            // Longer than the table: as many full tables as there are, and the rest.
            None => at(count - 1) * (slot / count) as u64 + at(slot % count),
        };
        u32::try_from(units << self.size_log).unwrap_or(u32::MAX).max(1)
    }
}

/// How many of `words` belong to a size table, from the first on.
pub(super) fn words_of(words: &[&str]) -> usize {
    let known = |word: &str| SizeTableOptions::PARAMS.iter().any(|param| param.name == word);
    let pairs = words.chunks(2).take_while(|pair| known(pair[0]));
    pairs.map(<[&str]>::len).sum()
}

/// Refuses a size table at a discipline beneath another.
pub(super) fn only_at_the_root() -> SpecError {
    SpecError::new(
        "`stab` beneath another discipline: that one would count packets in by one length and out by \
         another; write `stab` at the root",
    )
}

/// Refuses a word where a discipline's name must stand behind a size table.
pub(super) fn name_missing(word: Option<&str>) -> SpecError {
    let found = word.map_or_else(String::new, |word| format!("`{}`: ", shortened(word)));
    SpecError::new(format!(
        "`stab`: {found}write {} and then a queue discipline, such as `stab linklayer atm overhead 40 htb \
         rate 2mbit`",
        names()
    ))
}

fn names() -> String {
    SizeTableOptions::PARAMS.iter().map(|param| param.name).collect::<Vec<_>>().join(", ")
}

params! {
    /// Words of `tc` behind `stab`.
    struct SizeTableOptions {
        /// longest packet that the table is made for
        mtu: u32 = number("bytes", 0, 1 << 20).default("2047"),
        /// slots of the table
        tsize: u32 = number("slots", 0, 32_000).default("512"),
        /// the least that a packet counts as, before cells
        mpu: u32 = number("bytes", 0, 65_535).default("0"),
        /// bytes added to every packet; it may be negative
        overhead: i32 = integer("bytes", -65_535, 65_535).default("0"),
        /// `atm` (or `adsl`): a packet occupies whole cells
        cells as "linklayer": Placed<bool> = either(&["ethernet", "atm", "adsl"])
            .default("ethernet")
            .placed(),
    }
}

/// `tc` makes slots of 4 bytes of it, although tc-stab(8) says 2048.
const DEFAULT_MTU: u32 = 2_047;
const DEFAULT_SLOTS: u32 = 512;
/// `TC_LINKLAYER_ATM`.
const ATM: u8 = 2;
/// Bytes of an ATM cell, and how many of them carry something.
const CELL: u64 = 53;
const CELL_PAYLOAD: u64 = 48;

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> SizeTable {
        SizeTable::read(&text.split(' ').collect::<Vec<_>>()).unwrap()
    }

    /// The attributes that iproute2 6.1 sends, as strace shows them.
    #[test]
    fn tables_are_tcs() {
        let adsl = table("linklayer atm overhead 40 mpu 64");
        assert_eq!((adsl.cell_log, adsl.size_log, adsl.cell_align), (2, 0, -1));
        assert_eq!((adsl.mtu, adsl.slots.len(), adsl.link_layer), (2_047, 512, 2));
        assert_eq!(adsl.slots[..24], [106; 24]);
        assert_eq!(adsl.slots[24..36], [159; 12]);
        let coarse = table("mtu 1500 tsize 128 linklayer adsl");
        assert_eq!((coarse.cell_log, coarse.slots.len()), (4, 128));
        assert_eq!(coarse.slots[..4], [53, 53, 53, 106]);
        let wide = table("mtu 70000 tsize 16 linklayer atm");
        assert_eq!((wide.cell_log, wide.size_log), (13, 2));
        assert_eq!(wide.slots[..4], [2_265, 4_531, 6_784, 9_049]);
        assert_eq!(wide.slots[12..], [29_401, 31_667, 33_920, 36_185]);
        assert_eq!(table("tsize 2 mpu 100").slots, [1_024, 2_048]);
        assert_eq!(table("mtu 1 mpu 3").slots[..6], [3, 3, 3, 4, 5, 6]);
        let bare = table("linklayer ethernet overhead 18");
        assert_eq!((bare.link_layer, bare.mtu, bare.slots.len()), (1, 0, 0));
        assert_eq!(table("overhead -4").link_layer, 0);
    }

    /// tc-stab(8): a packet of 100 bytes takes three cells, 159 bytes.
    #[test]
    fn lengths_are_the_kernels() {
        let length = |text: &str, len| table(text).length_of(len);
        assert_eq!(length("linklayer atm", 100), 159);
        assert_eq!([96, 97].map(|len| length("linklayer atm", len)), [106, 159]);
        // 1514 + 40 bytes in slots of 4: cells for 1556, 33 of them.
        assert_eq!(length("linklayer atm overhead 40", 1_514), 33 * 53);
        assert_eq!(length("overhead 18", 1_514), 1_532);
        assert_eq!([10, 14, 15].map(|len| length("overhead -14", len)), [1, 1, 1]);
        // Ethernet rounds up to a slot, too, and short packets to the least.
        assert_eq!([1, 60, 61, 64, 65].map(|len| length("mpu 64", len)), [64, 64, 64, 64, 68]);
        // Beyond the table: slot 513 is a full table and slot 1.
        assert_eq!(length("mpu 64", 2_048 + 8), 2_048 + 64);
        assert_eq!(length("mpu 64", 3 * 2_048), 2 * 2_048 + 2_048);
    }

    /// Lengths that Linux 6.18 counted of UDP packets of these lengths on its loopback device, beneath `pfifo`
    /// with these tables of iproute2 6.1 (`tc -s qdisc`).
    #[test]
    fn lengths_are_those_that_linux_counted() {
        const SENT: [u32; 13] =
            [43, 60, 61, 74, 114, 590, 1_014, 1_514, 2_048, 2_114, 5_014, 9_014, 30_014];
        for (text, counted) in [
            (
                "linklayer atm overhead 40",
                [106, 159, 159, 159, 212, 742, 1_166, 1_749, 2_332, 2_438, 5_618, 10_070, 33_443],
            ),
            (
                "linklayer adsl",
                [53, 106, 106, 106, 159, 689, 1_166, 1_696, 2_279, 2_385, 5_618, 10_070, 33_390],
            ),
            (
                "mpu 64",
                [64, 64, 64, 76, 116, 592, 1_016, 1_516, 2_048, 2_116, 5_016, 9_016, 30_016],
            ),
            (
                "overhead -100",
                [1, 1, 1, 1, 14, 490, 914, 1_414, 1_948, 2_014, 4_914, 8_914, 29_914],
            ),
            (
                "mtu 1500 tsize 128 linklayer atm",
                [53, 106, 106, 106, 159, 689, 1_166, 1_696, 2_279, 2_385, 5_618, 10_070, 33_390],
            ),
            (
                "mtu 70000 tsize 16 linklayer atm",
                [
                    9_060, 9_060, 9_060, 9_060, 9_060, 9_060, 9_060, 9_060, 9_060, 9_060, 9_060,
                    18_124, 36_196,
                ],
            ),
            (
                "tsize 2 mpu 100",
                [
                    1_024, 1_024, 1_024, 1_024, 1_024, 1_024, 1_024, 2_048, 2_048, 3_072, 5_120,
                    9_216, 30_720,
                ],
            ),
        ] {
            assert_eq!(SENT.map(|len| table(text).length_of(len)), counted, "{text}");
        }
    }
}
