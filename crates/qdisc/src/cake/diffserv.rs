//! Tins: how many, what each is for, which code points go into it.

use weir_core::Dscp;

use super::longest::TINS;
use super::options::CakeDiffserv;

/// A division of traffic into tins.
#[derive(Debug)]
pub(super) struct Preset {
    /// The tin of each code point.
    pub tins: [u8; 64],
    /// The tins, best effort first; later ones are served first as long as they keep to their share.
    pub plans: &'static [Plan],
}

/// A tin before it has a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// Its name, as `tc -s` has it.
    pub name: &'static str,
    /// The share of the bandwidth up to which it has its priority.
    pub share: Share,
    /// Its weight where there is no bandwidth to keep to.
    pub quantum: u16,
    /// Its place when tins are listed.
    pub listed: usize,
}

/// A share of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// One part of 2^n.
    Part(u32),
    /// 7/8, so many times over.
    SevenEighths(u32),
}

impl Share {
    /// This share of `rate`, rounded down at every step.
    pub fn of(self, rate: u64) -> u64 {
        match self {
            Self::Part(shift) => rate >> shift,
            Self::SevenEighths(times) => (0..times).fold(rate, |rate, _| rate * 7 / 8),
        }
    }
}

impl Preset {
    pub const fn of(diffserv: CakeDiffserv) -> &'static Self {
        match diffserv {
            CakeDiffserv::Besteffort => &BESTEFFORT,
            CakeDiffserv::Precedence => &PRECEDENCE,
            CakeDiffserv::Diffserv8 => &DIFFSERV8,
            CakeDiffserv::Diffserv4 => &DIFFSERV4,
            CakeDiffserv::Diffserv3 => &DIFFSERV3,
        }
    }

    pub fn tin_of(&self, dscp: Dscp) -> usize {
        usize::from(self.tins[usize::from(dscp.get())])
    }

    /// The tin that stands at `place`, counted from 1, when tins are listed.
    pub fn tin_listed(&self, place: usize) -> Option<usize> {
        self.plans.iter().position(|plan| plan.listed + 1 == place)
    }
}

/// The tin of `diffserv4` that a code point goes into: 0 bulk, 1 best effort, 2 video, 3 voice.
pub fn diffserv4_tin(dscp: Dscp) -> usize {
    DIFFSERV4.plans[DIFFSERV4.tin_of(dscp)].listed
}

/// The shares of `rate` up to which the tins of `diffserv4` have their priority, from bulk to voice.
pub fn diffserv4_shares(rate: u64) -> [u64; 4] {
    let mut shares = [0; 4];
    for plan in DIFFSERV4.plans {
        shares[plan.listed] = plan.share.of(rate);
    }
    shares
}

static BESTEFFORT: Preset =
    Preset { tins: [0; 64], plans: &[plan("Tin 0", Share::Part(0), u16::MAX, 0)] };

/// Bulk: LE, CS1. Voice: CS7, CS6, EF, VA, and the old "minimise delay".
static DIFFSERV3: Preset = Preset {
    tins: tins(0, &[(1, &[LE, CS1]), (2, &[TOS4, VA, EF, CS6, CS7])]),
    plans: &[
        plan("Best Effort", Share::Part(0), 1024, 1),
        plan("Bulk", Share::Part(4), 1024 >> 4, 0),
        plan("Voice", Share::Part(2), 1024 >> 2, 2),
    ],
};

/// Bulk as above. Video: AF4x, AF3x, AF2x, CS3, CS2, "minimise delay". Voice: CS7 to CS4, EF, VA.
static DIFFSERV4: Preset = Preset {
    tins: tins(
        0,
        &[
            (1, &[LE, CS1]),
            (2, &[TOS4, CS2, AF21, AF22, AF23, CS3, AF31, AF32, AF33, AF41, AF42, AF43]),
            (3, &[CS4, CS5, VA, EF, CS6, CS7]),
        ],
    ),
    plans: &[
        plan("Best Effort", Share::Part(0), 1024, 1),
        plan("Bulk", Share::Part(4), 1024 >> 4, 0),
        plan("Video", Share::Part(1), 1024 >> 1, 2),
        plan("Voice", Share::Part(2), 1024 >> 2, 3),
    ],
};

/// From below: background, high throughput, the rest, video, low-latency transactions, shells, minimum
/// latency, network control.
static DIFFSERV8: Preset = Preset {
    tins: tins(
        2,
        &[
            (0, &[LE]),
            (1, &[TOS2, CS1, AF11, AF12, AF13]),
            (3, &[CS3, AF31, AF32, AF33, AF41, AF42, AF43]),
            (4, &[TOS4, AF21, AF22, AF23]),
            (5, &[CS2]),
            (6, &[CS4, CS5, VA, EF]),
            (7, &[CS6, CS7]),
        ],
    ),
    plans: &STEPS,
};

/// The three bits of RFC 791.
static PRECEDENCE: Preset = Preset {
    tins: {
        let mut tins = [0; 64];
        let mut dscp = 0;
        while dscp < 64 {
            tins[dscp] = dscp as u8 >> 3;
            dscp += 1;
        }
        tins
    },
    plans: &STEPS,
};

/// Eight tins, each with seven eighths of the one before it.
const STEPS: [Plan; TINS] = [
    plan("Tin 0", Share::SevenEighths(0), 256, 0),
    plan("Tin 1", Share::SevenEighths(1), 224, 1),
    plan("Tin 2", Share::SevenEighths(2), 196, 2),
    plan("Tin 3", Share::SevenEighths(3), 171, 3),
    plan("Tin 4", Share::SevenEighths(4), 149, 4),
    plan("Tin 5", Share::SevenEighths(5), 130, 5),
    plan("Tin 6", Share::SevenEighths(6), 113, 6),
    plan("Tin 7", Share::SevenEighths(7), 98, 7),
];

const fn plan(name: &'static str, share: Share, quantum: u16, listed: usize) -> Plan {
    Plan { name, share, quantum, listed }
}

/// All code points in tin `rest` but for those that are listed.
const fn tins(rest: u8, listed: &[(u8, &[u8])]) -> [u8; 64] {
    let mut tins = [rest; 64];
    let mut n = 0;
    while n < listed.len() {
        let (tin, points) = listed[n];
        let mut point = 0;
        while point < points.len() {
            tins[points[point] as usize] = tin;
            point += 1;
        }
        n += 1;
    }
    tins
}

/// Code points: RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622; the last two are the old TOS bits of
/// RFC 1349.
const LE: u8 = 1;
const CS1: u8 = 8;
const AF11: u8 = 10;
const AF12: u8 = 12;
const AF13: u8 = 14;
const CS2: u8 = 16;
const AF21: u8 = 18;
const AF22: u8 = 20;
const AF23: u8 = 22;
const CS3: u8 = 24;
const AF31: u8 = 26;
const AF32: u8 = 28;
const AF33: u8 = 30;
const CS4: u8 = 32;
const AF41: u8 = 34;
const AF42: u8 = 36;
const AF43: u8 = 38;
const CS5: u8 = 40;
const VA: u8 = 44;
const EF: u8 = 46;
const CS6: u8 = 48;
const CS7: u8 = 56;
const TOS2: u8 = 2;
const TOS4: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tc::Choice;

    fn preset_named(word: &str) -> &'static Preset {
        Preset::of(CakeDiffserv::named(word).unwrap())
    }

    fn tin(preset: &str, point: &str) -> &'static str {
        let preset = preset_named(preset);
        preset.plans[preset.tin_of(Dscp::parse(point).unwrap())].name
    }

    #[test]
    fn code_points_go_where_the_manual_says() {
        for (point, three, four, eight) in [
            ("BE", "Best Effort", "Best Effort", "Tin 2"),
            ("LE", "Bulk", "Bulk", "Tin 0"),
            ("CS1", "Bulk", "Bulk", "Tin 1"),
            ("AF13", "Best Effort", "Best Effort", "Tin 1"),
            ("CS2", "Best Effort", "Video", "Tin 5"),
            ("AF22", "Best Effort", "Video", "Tin 4"),
            ("CS3", "Best Effort", "Video", "Tin 3"),
            ("AF41", "Best Effort", "Video", "Tin 3"),
            ("CS4", "Best Effort", "Voice", "Tin 6"),
            ("CS5", "Best Effort", "Voice", "Tin 6"),
            ("VA", "Voice", "Voice", "Tin 6"),
            ("EF", "Voice", "Voice", "Tin 6"),
            ("CS6", "Voice", "Voice", "Tin 7"),
            ("4", "Voice", "Video", "Tin 4"),
            ("2", "Best Effort", "Best Effort", "Tin 1"),
            ("45", "Best Effort", "Best Effort", "Tin 2"),
        ] {
            let found = ["diffserv3", "diffserv4", "diffserv8"].map(|preset| tin(preset, point));
            assert_eq!(found, [three, four, eight], "{point}");
        }
        let places = ["LE", "BE", "AF41", "VA"].map(|point| Dscp::parse(point).unwrap());
        assert_eq!(places.map(diffserv4_tin), [0, 1, 2, 3]);
        assert_eq!(diffserv4_shares(16), [1, 16, 8, 4]);
        assert_eq!(tin("precedence", "EF"), "Tin 5");
        assert_eq!(tin("besteffort", "EF"), "Tin 0");
    }

    #[test]
    fn thresholds_are_those_that_tc_shows_at_ten_mbit() {
        let shares = |preset: &str| -> Vec<u64> {
            let plans = preset_named(preset).plans;
            plans.iter().map(|plan| plan.share.of(1_250_000) * 8).collect()
        };
        assert_eq!(shares("diffserv3"), [10_000_000, 625_000, 2_500_000]);
        assert_eq!(shares("diffserv4"), [10_000_000, 625_000, 5_000_000, 2_500_000]);
        assert_eq!(
            shares("diffserv8"),
            [
                10_000_000, 8_750_000, 7_656_248, 6_699_216, 5_861_808, 5_129_080, 4_487_944,
                3_926_944
            ]
        );
        for (n, plan) in STEPS.iter().enumerate() {
            assert_eq!(u64::from(plan.quantum), Share::SevenEighths(n as u32).of(256));
        }
    }
}
