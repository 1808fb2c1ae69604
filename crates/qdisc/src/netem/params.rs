//! Parameters of `netem` in `tc` syntax: the rules of iproute2's `tc/q_netem.c`.

use weir_core::{Duration, Rng, units};

use super::chance::{Chance, Correlated, Loss, State};
use super::distribution::Distribution;
use super::{Cells, Jitter, Slots};
use crate::tc::{
    Choice, Declared, Plain, SpecError, Text, Unless0, number, one_of, params, switch, words,
};

/// How a time is read: what a number without a unit means differs.
type ReadTime = fn(&str) -> Result<Duration, units::UnitError>;

/// The words of one parameter.
struct Words<'t> {
    text: &'t Text<'t>,
    words: Vec<&'t str>,
}

impl<'t> Words<'t> {
    fn of(text: &'t Text<'_>) -> Self {
        Self { text, words: text.words() }
    }

    /// A time in nanoseconds, as `read` has it. `tc` has 64 bits for it, whose sums overflow in the kernel.
    fn nanos(&self, place: usize, read: ReadTime) -> Result<Option<i64>, SpecError> {
        let parse = |word: &&str| {
            let time = read(word).map_err(|error| self.text.wrap(&error))?;
            if time > MAX_TIME {
                return Err(self.text.bad("write times up to 1000000s"));
            }
            Ok(time.as_nanos() as i64)
        };
        self.words.get(place).map(parse).transpose()
    }

    fn number<N: std::str::FromStr>(&self, place: usize) -> Result<Option<N>, SpecError> {
        let parse = |word: &&str| word.parse().map_err(|_| self.text.bad("write whole numbers"));
        self.words.get(place).map(parse).transpose()
    }

    /// A share in units of 2^-32, as the kernel has it; the percent sign may be left out.
    fn share(&self, place: usize) -> Result<Option<u32>, SpecError> {
        let parse = |word: &&str| {
            let number = word.strip_suffix('%').unwrap_or(word);
            let percent: Option<f64> = number.parse().ok();
            percent
                .filter(|percent| (0.0..=100.0).contains(percent))
                .map(|percent| (percent / 100.0 * f64::from(u32::MAX)).round() as u32)
                .ok_or_else(|| self.text.bad("write percentages from 0% to 100%"))
        };
        self.words.get(place).map(parse).transpose()
    }
}

/// `PERCENT [CORRELATION]`, in units of 2^-32.
#[derive(Clone, Copy, Default)]
pub(super) struct ChanceOptions {
    probability: u32,
    correlation: u32,
}

impl ChanceOptions {
    pub fn chance(self, rng: &mut Rng) -> Chance {
        Chance::new(self.probability, Correlated::new(self.correlation, rng))
    }
}

fn read_chance(text: &Text<'_>) -> Result<ChanceOptions, SpecError> {
    let words = Words::of(text);
    let correlation = words.share(1)?.unwrap_or(0);
    Ok(ChanceOptions { probability: words.share(0)?.unwrap_or(0), correlation })
}

/// `TIME [JITTER [CORRELATION]]`: nanoseconds, and units of 2^-32.
#[derive(Clone, Copy, Default)]
pub(super) struct DelayOptions {
    mean: i64,
    width: i64,
    correlation: u32,
}

fn read_delay(text: &Text<'_>) -> Result<DelayOptions, SpecError> {
    let words = Words::of(text);
    let correlation = words.share(2)?.unwrap_or(0);
    let mean = words.nanos(0, units::parse_time)?.unwrap_or(0);
    // The kernel caps it.
    let width = words.nanos(1, units::parse_time)?.unwrap_or(0).min(i64::from(i32::MAX));
    Ok(DelayOptions { mean, width, correlation })
}

/// `[random] PERCENT [CORRELATION]`, or a model that draws nothing before the first packet.
pub(super) enum LossOptions {
    Random(ChanceOptions),
    Model(Loss),
}

impl LossOptions {
    pub fn loss(self, rng: &mut Rng) -> Loss {
        match self {
            Self::Random(options) => Loss::Random(options.chance(rng)),
            Self::Model(loss) => loss,
        }
    }
}

/// `[random] PERCENT [CORRELATION]`, `state P13 [P31 [P32 [P23 [P14]]]]` and `gemodel P [R [1-H [1-K]]]`.
fn read_loss(text: &Text<'_>) -> Result<LossOptions, SpecError> {
    let words = Words::of(text);
    let needed = |place| {
        let missing = || text.bad("a probability is missing");
        words.share(place)?.ok_or_else(missing)
    };
    let or = |place, default| Ok::<u32, SpecError>(words.share(place)?.unwrap_or(default));
    Ok(match words.words.first() {
        Some(&"state") => {
            let p13 = needed(1)?;
            LossOptions::Model(Loss::FourStates {
                p13,
                p31: or(2, u32::MAX - p13)?,
                p32: or(3, 0)?,
                p23: or(4, u32::MAX)?,
                p14: or(5, 0)?,
                state: State::Gap,
            })
        }
        Some(&"gemodel") => {
            let p = needed(1)?;
            LossOptions::Model(Loss::GilbertElliott {
                p,
                r: or(2, u32::MAX - p)?,
                h: u32::MAX - or(3, u32::MAX)?,
                k1: or(4, 0)?,
                bad: false,
            })
        }
        first => {
            let at = usize::from(first == Some(&"random"));
            let probability = needed(at)?;
            LossOptions::Random(ChanceOptions { probability, correlation: or(at + 1, 0)? })
        }
    })
}

/// `RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]`.
fn read_rate(text: &Text<'_>) -> Result<Cells, SpecError> {
    let words = Words::of(text);
    Ok(Cells {
        bytes_per_sec: text.rate_in(words.words[0])?.as_bytes_per_sec(),
        packet_overhead: words.number(1)?.unwrap_or(0),
        cell_size: words.number(2)?.unwrap_or(0),
        cell_overhead: words.number(3)?.unwrap_or(0),
    })
}

/// `MIN [MAX]` or `distribution NAME DELAY JITTER`, with `packets N` and `bytes N` behind.
fn read_slots(text: &Text<'_>) -> Result<Slots, SpecError> {
    let reader = Words::of(text);
    let words = &reader.words[..];
    let nanos = |place: usize| reader.nanos(place, units::parse_time64);
    let missing = || text.bad("write `MIN [MAX]` or `distribution NAME DELAY JITTER`");
    let (between, next) = if words[0] == "distribution" {
        let name = words.get(1).ok_or_else(missing)?;
        let shape = Distribution::named(name).ok_or_else(|| {
            let allowed = format!("known are {}", Distribution::WORDS.join(", "));
            SpecError::bad("netem", "distribution", name, &allowed)
        })?;
        let mean = nanos(2)?.ok_or_else(missing)?;
        let width = nanos(3)?.ok_or_else(missing)?.min(i64::from(i32::MAX));
        ((mean, width, Some(shape)), 4)
    } else {
        let least = nanos(0)?.ok_or_else(missing)?;
        let is_time = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
        match words.get(1).filter(|word| is_time(word)) {
            // As `tc` has it: the most is the least at least.
            Some(_) => ((least, nanos(1)?.unwrap_or(least).max(least), None), 2),
            None => ((least, least, None), 1),
        }
    };
    const MOST_PACKETS: &str = "write a whole number up to 2147483647";
    let mut slots = Slots { between, packets: i32::MAX, bytes: i32::MAX };
    for pair in words[next..].chunks(2) {
        let &[name, most] = pair else { return Err(missing()) };
        let bad = |allowed: &str| text.bad_value(&format!("{name} {most}"), allowed);
        if name == "packets" {
            slots.packets = most.parse().map_err(|_| bad(MOST_PACKETS))?;
        } else {
            // A size to `tc`, 32 bits with a sign to the kernel.
            let size = units::parse_size(most).map_err(|error| bad(error.allowed))?;
            slots.bytes = i32::try_from(size.get()).map_err(|_| bad("write a size below 2gb"))?;
        }
    }
    Ok(slots)
}

impl NetemOptions {
    /// `delay` and `distribution`.
    pub fn jitter(&mut self, rng: &mut Rng) -> Result<Jitter, SpecError> {
        let DelayOptions { mean, width, correlation } = self.delay.unwrap_or_default();
        let draws = Correlated::new(correlation, rng);
        let distribution = std::mem::take(&mut self.distribution);
        if distribution != Distribution::Uniform && (mean == 0 || width == 0) {
            return Err(SpecError::new(
                "netem: `distribution` shapes jitter: write `delay TIME JITTER` too",
            ));
        }
        Ok(Jitter { mean, width, draws, distribution })
    }

    /// The distance of packets that are sent at once, if any are: `reorder` with `gap`.
    pub fn gap(&self, delay: &Jitter) -> Result<Option<u32>, SpecError> {
        match (self.reorder.is_some(), self.gap.0) {
            (true, _) if delay.mean == 0 => Err(SpecError::new(
                "netem: `reorder` sends packets without the delay: write `delay TIME` too",
            )),
            (true, gap) => Ok(Some(gap.unwrap_or(1))),
            (false, Some(gap)) => Err(SpecError::bad(
                "netem",
                "gap",
                &gap.to_string(),
                "it needs `reorder PERCENT`, the share of packets at that distance that is sent first",
            )),
            (false, None) => Ok(None),
        }
    }
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

fn rate_words(words: &[&str]) -> usize {
    1 + numbers(words.get(1..).unwrap_or(&[]), 3)
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

impl Plain for ChanceOptions {}
impl Plain for DelayOptions {}
impl Plain for LossOptions {}
impl Plain for Cells {}
impl Plain for Slots {}

const CHANCE: Declared<Option<ChanceOptions>> =
    words("PERCENT [CORRELATION]", |words| numbers(words, 2), read_chance).absent("none");

params! {
    /// Parameters of `netem`.
    pub(super) struct NetemOptions {
        /// most packets that may be under way
        pub limit: u32 = number("packets", 1, u32::MAX as u64).default("1000"),
        /// time by which packets are held; with jitter they may overtake one another
        delay: Option<DelayOptions> =
            words("TIME [JITTER [CORRELATION]]", |words| numbers(words, 3), read_delay)
                .aliases(&["latency"])
                .absent("none"),
        /// how jitter is distributed
        distribution: Distribution = one_of().default("uniform"),
        /// how packets are lost as they arrive
        pub loss: Option<LossOptions> = words(LOSS_SHAPE, loss_words, read_loss)
            .aliases(&["drop"])
            .absent("none"),
        /// mark packets where they would be lost
        pub ecn: bool = switch(),
        /// share of packets that arrive with a wrong bit: their receiver drops them
        pub corrupt: Option<ChanceOptions> = CHANCE,
        /// share of packets that arrive twice
        pub duplicate: Option<ChanceOptions> = CHANCE,
        /// share of packets that are sent at once, ahead of those that are held
        pub reorder: Option<ChanceOptions> = CHANCE,
        /// least distance between packets that `reorder` sends at once
        gap: Unless0<u32> = number("packets", 0, u32::MAX as u64).absent_or_0("1"),
        /// rate of the line that is emulated: a packet leaves once it would have been sent
        pub rate: Option<Cells> =
            words("RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]", rate_words, read_rate)
                .absent("unlimited"),
        /// packets leave together in slots that are so far apart
        pub slot: Option<Slots> = words(SLOT_SHAPE, slot_words, read_slots).absent("none"),
    }
}

const LOSS_SHAPE: &str = "[random] PERCENT [CORRELATION] | state P13 [P31 [P32 [P23 [P14]]]] | \
                          gemodel P [R [1-H [1-K]]]";

const SLOT_SHAPE: &str = "MIN [MAX] | distribution NAME DELAY JITTER, [packets N] [bytes SIZE]";

/// Eleven days.
const MAX_TIME: Duration = Duration::from_secs(1_000_000);
