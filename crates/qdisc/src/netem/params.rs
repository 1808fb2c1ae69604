//! Parameters of `netem` in `tc` syntax: the rules of iproute2's `tc/q_netem.c`.

use weir_core::{Duration, Rng, units};

use super::chance::{Chance, Correlated, Loss, State};
use super::distribution::Distribution;
use super::{Cells, Jitter, Slots};
use crate::tc::{DefaultValue, Kind, Param, Params, SetUpError};

/// The values behind one parameter.
pub(super) struct Reader<'a> {
    params: &'a Params,
    name: &'static str,
    words: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    pub fn new(params: &'a Params, name: &'static str) -> Self {
        Self { params, name, words: params.words(name) }
    }

    pub fn is_given(&self) -> bool {
        !self.words.is_empty()
    }

    fn bad(&self, allowed: &str) -> SetUpError {
        self.params.bad(self.name, &self.words.join(" "), allowed)
    }

    fn time(&self, place: usize) -> Result<Option<Duration>, SetUpError> {
        let parse = |word: &&str| {
            units::parse_time(word).map_err(|error| self.params.wrap(self.name, &error))
        };
        self.words.get(place).map(parse).transpose()
    }

    fn number<N: std::str::FromStr>(&self, place: usize) -> Result<Option<N>, SetUpError> {
        let parse = |word: &&str| word.parse().map_err(|_| self.bad("write whole numbers"));
        self.words.get(place).map(parse).transpose()
    }

    /// A share in units of 2^-32, as the kernel has it; the percent sign may be left out.
    fn share(&self, place: usize) -> Result<Option<u32>, SetUpError> {
        let parse = |word: &&str| {
            let number = word.strip_suffix('%').unwrap_or(word);
            let percent: Option<f64> = number.parse().ok();
            percent
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|percent| (percent / 100.0 * f64::from(u32::MAX)).round() as u32)
                .ok_or_else(|| self.bad("write percentages from 0% to 100%"))
        };
        self.words.get(place).map(parse).transpose()
    }
}

/// `NAME PERCENT [CORRELATION]`.
pub(super) fn read_chance(
    params: &Params,
    name: &'static str,
    rng: &mut Rng,
) -> Result<Chance, SetUpError> {
    let reader = Reader::new(params, name);
    let correlation = reader.share(1)?.unwrap_or(0);
    Ok(Chance::new(reader.share(0)?.unwrap_or(0), Correlated::new(correlation, rng)))
}

/// `delay TIME [JITTER [CORRELATION]]` and `distribution NAME`.
pub(super) fn read_delay(params: &Params, rng: &mut Rng) -> Result<Jitter, SetUpError> {
    let reader = Reader::new(params, "delay");
    let nanos = |time: Option<Duration>| {
        let nanos = time.unwrap_or(Duration::ZERO).as_nanos();
        i64::try_from(nanos).map_err(|_| reader.bad("times up to 292 years are allowed"))
    };
    let correlation = reader.share(2)?.unwrap_or(0);
    let jitter = Jitter {
        mean: nanos(reader.time(0)?)?,
        // The kernel caps it.
        width: nanos(reader.time(1)?)?.min(i64::from(i32::MAX)),
        draws: Correlated::new(correlation, rng),
        distribution: read_distribution(params, params.choice("distribution")?)?,
    };
    if jitter.distribution != Distribution::Uniform && (jitter.mean == 0 || jitter.width == 0) {
        return Err(SetUpError::new(
            "netem: `distribution` shapes jitter: write `delay TIME JITTER` too",
        ));
    }
    Ok(jitter)
}

fn read_distribution(params: &Params, name: &str) -> Result<Distribution, SetUpError> {
    Distribution::named(name).ok_or_else(|| {
        params.bad("distribution", name, &format!("known are {}", Distribution::NAMES.join(", ")))
    })
}

/// `loss [random] PERCENT [CORRELATION]`, `loss state P13 [P31 [P32 [P23 [P14]]]]` and `loss gemodel P [R
/// [1-H [1-K]]]`.
pub(super) fn read_loss(params: &Params, rng: &mut Rng) -> Result<Loss, SetUpError> {
    let reader = Reader::new(params, "loss");
    let needed = |place| {
        let missing = || reader.bad("a probability is missing");
        reader.share(place)?.ok_or_else(missing)
    };
    let or = |place, default| Ok::<u32, SetUpError>(reader.share(place)?.unwrap_or(default));
    Ok(match reader.words.first() {
        Some(&"state") => {
            let p13 = needed(1)?;
            Loss::FourStates {
                p13,
                p31: or(2, u32::MAX - p13)?,
                p32: or(3, 0)?,
                p23: or(4, u32::MAX)?,
                p14: or(5, 0)?,
                state: State::Gap,
            }
        }
        Some(&"gemodel") => {
            let p = needed(1)?;
            Loss::GilbertElliott {
                p,
                r: or(2, u32::MAX - p)?,
                h: u32::MAX - or(3, u32::MAX)?,
                k1: or(4, 0)?,
                bad: false,
            }
        }
        first => {
            let at = usize::from(first == Some(&"random"));
            let probability = if reader.is_given() { needed(at)? } else { 0 };
            Loss::Random(Chance::new(probability, Correlated::new(or(at + 1, 0)?, rng)))
        }
    })
}

/// `rate RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
pub(super) fn read_rate(params: &Params) -> Result<Option<Cells>, SetUpError> {
    let reader = Reader::new(params, "rate");
    let Some(rate) = reader.words.first() else { return Ok(None) };
    Ok(Some(Cells {
        bytes_per_sec: params.rate_in("rate", rate)?.as_bytes_per_sec(),
        packet_overhead: reader.number(1)?.unwrap_or(0),
        cell_size: reader.number(2)?.unwrap_or(0),
        cell_overhead: reader.number(3)?.unwrap_or(0),
    }))
}

/// `reorder PERCENT [CORRELATION]` with `gap DISTANCE`: the distance, if anything is reordered.
pub(super) fn read_gap(params: &Params, delay: &Jitter) -> Result<Option<u32>, SetUpError> {
    let gap = params.try_number("gap")?.map(|gap| gap as u32).filter(|&gap| gap > 0);
    match (Reader::new(params, "reorder").is_given(), gap) {
        (true, _) if delay.mean == 0 => Err(SetUpError::new(
            "netem: `reorder` sends packets without the delay: write `delay TIME` too",
        )),
        (true, gap) => Ok(Some(gap.unwrap_or(1))),
        (false, Some(gap)) => Err(params.bad(
            "gap",
            &gap.to_string(),
            "it needs `reorder PERCENT`, the share of packets at that distance that is sent first",
        )),
        (false, None) => Ok(None),
    }
}

/// `slot MIN [MAX]` or `slot distribution NAME DELAY JITTER`, with `packets N` and `bytes N` behind.
pub(super) fn read_slots(params: &Params) -> Result<Option<Slots>, SetUpError> {
    let reader = Reader::new(params, "slot");
    let words = &reader.words[..];
    if words.is_empty() {
        return Ok(None);
    }
    let nanos = |place: usize| -> Result<Option<i64>, SetUpError> {
        Ok(reader.time(place)?.map(|time| time.as_nanos() as i64))
    };
    let missing = || reader.bad("write `MIN [MAX]` or `distribution NAME DELAY JITTER`");
    let (between, next) = if words[0] == "distribution" {
        let name = words.get(1).ok_or_else(missing)?;
        let shape = read_distribution(params, name)?;
        let mean = nanos(2)?.ok_or_else(missing)?;
        let width = nanos(3)?.ok_or_else(missing)?.min(i64::from(i32::MAX));
        ((mean, width, Some(shape)), 4)
    } else {
        let least = nanos(0)?.ok_or_else(missing)?;
        let is_time = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        match words.get(1).filter(|word| is_time(word)) {
            Some(_) => ((least, nanos(1)?.expect("it is there"), None), 2),
            None => ((least, least, None), 1),
        }
    };
    let mut slots = Slots { between, packets: i32::MAX, bytes: i32::MAX };
    for pair in (next..words.len()).step_by(2) {
        let most = reader.number(pair + 1)?.ok_or_else(missing)?;
        match words[pair] {
            "packets" => slots.packets = most,
            _ => slots.bytes = most,
        }
    }
    Ok(Some(slots))
}

/// How many of `words`, `most` at most, are numbers.
fn numbers(words: &[&str], most: usize) -> usize {
    let is_number = |word: &&&str| {
        word.strip_prefix('-').unwrap_or(word).starts_with(|c: char| c.is_ascii_digit())
    };
    words.iter().take(most).take_while(is_number).count()
}

fn loss_words(words: &[&str]) -> usize {
    match words.first() {
        Some(&"random") => 1 + numbers(&words[1..], 2),
        Some(&"state") => 1 + numbers(&words[1..], 5),
        Some(&"gemodel") => 1 + numbers(&words[1..], 4),
        _ => numbers(words, 2),
    }
}

fn slot_words(words: &[&str]) -> usize {
    let times = match words.first() {
        Some(&"distribution") => 2 + numbers(words.get(2..).unwrap_or(&[]), 2),
        _ => numbers(words, 2),
    };
    let behind = words.get(times..).unwrap_or(&[]);
    let pairs = behind.chunks(2).take_while(|pair| matches!(pair[0], "packets" | "bytes"));
    times + 2 * pairs.count()
}

const fn chance(name: &'static str, meaning: &'static str) -> Param {
    Param {
        name,
        aliases: &[],
        kind: Kind::Words { shape: "PERCENT [CORRELATION]", takes: |words| numbers(words, 2) },
        default: DefaultValue::Absent("none"),
        meaning,
    }
}

pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "limit",
        aliases: &[],
        kind: Kind::Number { unit: "packets", range: (1, u32::MAX as u64) },
        default: DefaultValue::Is("1000"),
        meaning: "most packets that may be under way",
    },
    Param {
        name: "delay",
        aliases: &["latency"],
        kind: Kind::Words {
            shape: "TIME [JITTER [CORRELATION]]",
            takes: |words| numbers(words, 3),
        },
        default: DefaultValue::Absent("none"),
        meaning: "time by which packets are held; with jitter they may overtake one another",
    },
    Param {
        name: "distribution",
        aliases: &[],
        kind: Kind::Choice(&Distribution::NAMES),
        default: DefaultValue::Is("uniform"),
        meaning: "how jitter is distributed",
    },
    Param {
        name: "loss",
        aliases: &["drop"],
        kind: Kind::Words {
            shape: "[random] PERCENT [CORRELATION] | state P13 [P31 [P32 [P23 [P14]]]] | \
                    gemodel P [R [1-H [1-K]]]",
            takes: loss_words,
        },
        default: DefaultValue::Absent("none"),
        meaning: "how packets are lost as they arrive",
    },
    Param {
        name: "ecn",
        aliases: &[],
        kind: Kind::Switch { off: None },
        default: DefaultValue::Is("off"),
        meaning: "mark packets where they would be lost",
    },
    chance("corrupt", "share of packets that arrive with a wrong bit: their receiver drops them"),
    chance("duplicate", "share of packets that arrive twice"),
    chance("reorder", "share of packets that are sent at once, ahead of those that are held"),
    Param {
        name: "gap",
        aliases: &[],
        kind: Kind::Number { unit: "packets", range: (0, u32::MAX as u64) },
        default: DefaultValue::Absent("1"),
        meaning: "least distance between packets that `reorder` sends at once",
    },
    Param {
        name: "rate",
        aliases: &[],
        kind: Kind::Words {
            shape: "RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]",
            takes: |words| 1 + numbers(words.get(1..).unwrap_or(&[]), 3),
        },
        default: DefaultValue::Absent("unlimited"),
        meaning: "rate of the line that is emulated: a packet leaves once it would have been sent",
    },
    Param {
        name: "slot",
        aliases: &[],
        kind: Kind::Words {
            shape: "MIN [MAX] | distribution NAME DELAY JITTER, [packets N] [bytes N]",
            takes: slot_words,
        },
        default: DefaultValue::Absent("none"),
        meaning: "packets leave together in slots that are so far apart",
    },
];
