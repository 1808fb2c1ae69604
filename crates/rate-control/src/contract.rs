//! The contract of a controller: its inputs and outputs.

use serde::{Deserialize, Serialize};
use weir_core::{Duration, Rate, Time};

use crate::{Auto, CakeAutorate, Fixed};

/// Finds the rates of a shaper.
pub trait Controller: Send {
    /// A probe to `source` leaves at `now`. Sources of other delays, such as the user's own traffic, are
    /// not announced.
    fn on_sent(&mut self, source: u32, now: Time);

    /// A delay was measured at `now`.
    fn on_delay(&mut self, delay: &Delay, now: Time);

    /// Hears that the shaper's own process did not act from `since` to `now`, as on a busy machine.
    ///
    /// Packets and delays that waited for it have waited in no queue of the line.
    fn on_late(&mut self, _since: Time, _now: Time) {}

    /// Looks at the traffic of both sides, `None` for one that is not shaped, and tells what it changes.
    /// Called every [`TICK`]; a much longer pause means that the machine slept.
    fn on_tick(
        &mut self,
        traffic: &[Option<Traffic>; 2],
        now: Time,
        decide: &mut dyn FnMut(Decision),
    );

    /// How long after the last probe the next should be sent, to each source in turn; `None` if none is
    /// wanted. It changes with every tick: a line that has become busy is probed more often at once, so that the
    /// driver asks again after each, however long the pause that it was told before.
    fn probe_every(&self) -> Option<Duration>;

    /// What the line of each side mostly carried under load, as far as that was learned: worth keeping for the
    /// next controller of the same line.
    fn learned(&self) -> [Option<Rate>; 2] {
        [None; 2]
    }
}

/// Side of a shaper: the direction of the packets that it holds back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Out towards the line: what the shaper lets go waits in front of the line next.
    Egress,
    /// In from the line: what arrives at the shaper has passed the line.
    Ingress,
}

impl Side {
    /// Both sides, in the order of arrays that hold something of each.
    pub const ALL: [Self; 2] = [Self::Egress, Self::Ingress];
}

/// A measured delay between the shaper, on its side of the line, and somewhere behind the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Number of the source: delays of one source compare with each other only.
    pub source: u32,
    /// When what was measured left the shaper.
    pub sent: Time,
    /// Round trip, there and back.
    pub rtt: Duration,
    /// The two ways, where the source tells its own time.
    pub one_way: Option<OneWay>,
    /// What it was measured by.
    pub by: Measured,
}

/// The number of the first source that is a connection of the user's; those below are probed.
pub const FIRST_CONNECTION: u32 = 1 << 16;

/// What a delay was measured by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measured {
    /// A probe's answer, or data of the user's that echoes a timestamp and was sent at once.
    #[default]
    Answer,
    /// The echo of a timestamp in an acknowledgement of the user's, which may have been kept back: the round trip is an
    /// upper bound, the way back exact.
    Echo,
    /// An acknowledgement of the user's of two segments or more, which is sent at once.
    Acknowledgement,
    /// Data of the user's that echoes a timestamp, and may have been sent after a pause of any length: what left with that
    /// timestamp has arrived, and no more is known.
    Arrival,
}

impl Measured {
    /// Whether it is an answer.
    #[must_use]
    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Answer)
    }

    /// Whether both ways are known exactly, not only up to how long the answer was kept back.
    #[must_use]
    pub const fn is_exact(self) -> bool {
        matches!(self, Self::Answer | Self::Acknowledgement)
    }
}

/// The two ways of a round trip, measured with two clocks that agree on nothing: each is off by the same
/// unknown amount, in opposite directions, so that only changes mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneWay {
    /// Delay of the way to the source, in ns, plus the clocks' difference.
    pub there_ns: i64,
    /// Delay of the way back from the source, in ns, less the clocks' difference.
    pub back_ns: i64,
}

/// Counters of a side: totals since they were made, and the backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that crossed the line or are about to: what left the shaper on egress, what arrived at it on
    /// ingress. As the shaper's framing counts them.
    pub bytes: u64,
    /// Packets that crossed the line or are about to.
    pub packets: u64,
    /// Bytes that wait in the shaper now.
    pub backlog_bytes: u64,
}

/// A decision of a controller: a new rate or state of a side, with its reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// Side whose rate or state changes.
    pub side: Side,
    /// The rate from now on; `None` lets everything through.
    pub rate: Option<Rate>,
    /// The state that the side is in from now on.
    pub state: State,
    /// Why, in a word.
    pub reason: Reason,
    /// Why, as a number in the [reason's unit](Reason::unit).
    pub value: f64,
}

/// State of a side's control.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// There is hardly any traffic.
    Idle,
    /// There is traffic, and the rate is held.
    Loaded,
    /// The rate is raised step by step to see whether the line carries more.
    Probing,
    /// The line has a queue, and the rate is lowered until it is gone.
    BackingOff,
    /// Nothing comes over the line, or no probe is answered.
    Stalled,
}

impl State {
    /// The state as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Loaded => "loaded",
            Self::Probing => "probing",
            Self::BackingOff => "backing_off",
            Self::Stalled => "stalled",
        }
    }
}

/// Why something was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The controller started. Value: 0.
    Start,
    /// Delays rose: by how much above the baseline, in ms.
    Delay,
    /// Answers are overdue: by how much, in ms.
    Overdue,
    /// The queue is gone: how long it took, in ms.
    Clear,
    /// To see whether the line carries more: by how much the rate is raised, in percent.
    Probe,
    /// The traffic does not use the rate that is being tried: its share of it, in percent.
    Unused,
    /// Traffic came: how much, in Mbit/s.
    Load,
    /// Traffic went: how much is left, in Mbit/s.
    Idle,
    /// Delays do not respond to the rate, which is lowered to see whether they do at all: for how long
    /// they have not, in ms.
    Test,
    /// Delays that do not respond to the rate are not a queue's: the new part of the baseline, in ms.
    Reroute,
    /// Delays that change, but not with the rate, are not a queue's: by how much above the baseline, in ms.
    Foreign,
    /// No probe is answered: for how long, in s.
    Silence,
    /// Ticks stayed out, as when the machine slept: how long, in s.
    Resume,
    /// Lines change while nobody looks: rate drifts towards what it mostly was, how long nothing was
    /// measured, in s.
    Age,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Start,
        Self::Delay,
        Self::Overdue,
        Self::Clear,
        Self::Probe,
        Self::Unused,
        Self::Load,
        Self::Idle,
        Self::Test,
        Self::Reroute,
        Self::Foreign,
        Self::Silence,
        Self::Resume,
        Self::Age,
    ];

    /// The reason as records name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Delay => "delay",
            Self::Overdue => "overdue",
            Self::Clear => "clear",
            Self::Probe => "probe",
            Self::Unused => "unused",
            Self::Load => "load",
            Self::Idle => "idle",
            Self::Test => "test",
            Self::Reroute => "reroute",
            Self::Foreign => "foreign",
            Self::Silence => "silence",
            Self::Resume => "resume",
            Self::Age => "age",
        }
    }

    /// The unit of the reason's number.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Start => "",
            Self::Delay
            | Self::Overdue
            | Self::Clear
            | Self::Test
            | Self::Reroute
            | Self::Foreign => "ms",
            Self::Probe | Self::Unused => "%",
            Self::Load | Self::Idle => "Mbit/s",
            Self::Silence | Self::Resume | Self::Age => "s",
        }
    }
}

/// The controller and its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Control {
    /// Weir's own.
    Auto(AutoSettings),
    /// The published law of cake-autorate: the rates of egress and ingress that it must be told.
    CakeAutorate {
        /// Bounds of the rate of egress.
        egress: Bounds,
        /// Bounds of the rate of ingress.
        ingress: Bounds,
    },
    /// Rates that stay, in bit/s; `None` lets everything through.
    Fixed {
        /// Rate of egress, in bit/s.
        egress_bps: Option<u64>,
        /// Rate of ingress, in bit/s.
        ingress_bps: Option<u64>,
    },
}

/// Settings of Weir's own controller; all are optional.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AutoSettings {
    /// Goal that matters more: low delay or high rate.
    #[serde(default)]
    pub mode: Mode,
    /// Egress stays at this rate, in bit/s, which its line surely carries; the other side is controlled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_bps: Option<u64>,
    /// Ingress stays at this rate, in bit/s, which its line surely carries; the other side is controlled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_bps: Option<u64>,
    /// The rate of egress never exceeds this, in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_max_bps: Option<u64>,
    /// The rate of ingress never exceeds this, in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_max_bps: Option<u64>,
    /// Capacity of egress, in bit/s, that an earlier controller learned: this one begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub egress_known_bps: Option<u64>,
    /// Capacity of ingress, in bit/s, that an earlier controller learned: this one begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_known_bps: Option<u64>,
}

/// Goal that matters more: as cFosSpeed's "favor ping time" and "favor bandwidth".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Short delays, at the price of about 4 % of the rate.
    #[default]
    Ping,
    /// All of the rate, at the price of delays of up to about 10 ms more.
    Bandwidth,
}

/// Least, usual and greatest rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Least rate, in bit/s.
    pub min_bps: u64,
    /// Usual rate, in bit/s, to which an idle side returns.
    pub base_bps: u64,
    /// Greatest rate, in bit/s.
    pub max_bps: u64,
}

impl Control {
    /// Makes the controller of these settings.
    #[must_use]
    pub fn build(&self) -> Box<dyn Controller> {
        match *self {
            Self::Auto(settings) => Box::new(Auto::new(&settings)),
            Self::CakeAutorate { egress, ingress } => {
                Box::new(CakeAutorate::new([egress, ingress]))
            }
            Self::Fixed { egress_bps, ingress_bps } => {
                Box::new(Fixed::new([egress_bps, ingress_bps].map(|bps| bps.map(Rate::from_bps))))
            }
        }
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// If one does not fit: which, and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        let at_least = |what: &str, bps: Option<u64>| match bps {
            Some(bps) if bps < MIN_RATE.as_bps() => {
                Err(format!("{what} {bps} bit/s: write {} or more", MIN_RATE.as_bps()))
            }
            _ => Ok(()),
        };
        match *self {
            Self::Auto(auto) => {
                if let (Some(egress), Some(ingress)) = (auto.egress_bps, auto.ingress_bps) {
                    return Err(format!(
                        "up {egress} and down {ingress} bit/s: nothing is left to control; rates that \
                         both stay are `fixed`"
                    ));
                }
                for (side, rate, max, known) in [
                    ("up", auto.egress_bps, auto.egress_max_bps, auto.egress_known_bps),
                    ("down", auto.ingress_bps, auto.ingress_max_bps, auto.ingress_known_bps),
                ] {
                    if let (Some(rate), Some(known)) = (rate, known) {
                        return Err(format!(
                            "{side} {rate} and {side} known {known} bit/s: a rate that stays needs no \
                             capacity; leave one out"
                        ));
                    }
                    if let (Some(rate), Some(max)) = (rate, max) {
                        return Err(format!(
                            "{side} {rate} and {side} max {max} bit/s: a rate that stays needs no bound; \
                             leave one out"
                        ));
                    }
                    at_least(&format!("{side} rate"), rate)?;
                    at_least(&format!("{side} max"), max)?;
                    at_least(&format!("{side} known"), known)?;
                }
                Ok(())
            }
            Self::Fixed { egress_bps, ingress_bps } => {
                at_least("up rate", egress_bps)?;
                at_least("down rate", ingress_bps)
            }
            Self::CakeAutorate { egress, ingress } => {
                for (side, Bounds { min_bps, base_bps, max_bps }) in
                    [("up", egress), ("down", ingress)]
                {
                    at_least(&format!("{side} min"), Some(min_bps))?;
                    if !(min_bps <= base_bps && base_bps <= max_bps) {
                        return Err(format!(
                            "{side} min {min_bps}, base {base_bps}, max {max_bps} bit/s: write them in \
                             this order, each at least the one before"
                        ));
                    }
                }
                Ok(())
            }
        }
    }
}

/// How often a controller is to be called: a tenth of the 200 ms in which congestion is to be found, so
/// that the calls themselves cost none of it.
pub const TICK: Duration = Duration::from_millis(20);
/// The least rate of any shaper: a full packet then takes 120 ms, and TCP still makes progress.
pub const MIN_RATE: Rate = Rate::from_kbit(100);
/// Age in seconds after which nobody begins with what an earlier controller learned: contracts and radio links change within months.
pub const MAX_LEARNED_AGE_S: u64 = 30 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_the_unit_of_its_number() {
        let of_unit = |unit: &str| {
            let named =
                Reason::ALL.into_iter().filter(|reason| reason.unit() == unit).map(Reason::name);
            named.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of_unit(""), "start");
        assert_eq!(of_unit("ms"), "delay overdue clear test reroute foreign");
        assert_eq!(of_unit("%"), "probe unused");
        assert_eq!(of_unit("Mbit/s"), "load idle");
        assert_eq!(of_unit("s"), "silence resume age");
    }

    /// Bounds of both sides with these rates of egress, in bit/s.
    fn cake_autorate(min_bps: u64, base_bps: u64, max_bps: u64) -> Control {
        let ingress = Bounds { min_bps: 100_000, base_bps: 100_000, max_bps: 100_000 };
        Control::CakeAutorate { egress: Bounds { min_bps, base_bps, max_bps }, ingress }
    }

    #[test]
    fn rates_that_are_told_are_in_order_and_not_below_the_least() {
        assert_eq!(cake_autorate(100_000, 100_000, 100_000).check(), Ok(()));
        assert_eq!(
            cake_autorate(99_999, 100_000, 100_000).check().unwrap_err(),
            "up min 99999 bit/s: write 100000 or more"
        );
        for (base_bps, max_bps) in [(199_999, 300_000), (300_000, 299_999)] {
            assert_eq!(
                cake_autorate(200_000, base_bps, max_bps).check().unwrap_err(),
                format!(
                    "up min 200000, base {base_bps}, max {max_bps} bit/s: write them in this order, each \
                     at least the one before"
                )
            );
        }
        let fixed = |ingress_bps| Control::Fixed { egress_bps: None, ingress_bps }.check();
        assert_eq!(fixed(None), Ok(()));
        assert_eq!(fixed(Some(100_000)), Ok(()));
        assert_eq!(fixed(Some(1)).unwrap_err(), "down rate 1 bit/s: write 100000 or more");
    }

    /// Only the traffic of shaped sides is decided on, once.
    #[test]
    fn fixed_rates_are_told_at_the_first_tick() {
        let control = Control::Fixed { egress_bps: Some(2_000_000), ingress_bps: Some(3_000_000) };
        let mut controller = control.build();
        let mut said = Vec::new();
        for ms in [20, 40] {
            let traffic = [None, Some(Traffic::default())];
            controller.on_tick(&traffic, Time::from_millis(ms), &mut |one| said.push(one));
        }
        let expected = Decision {
            side: Side::Ingress,
            rate: Some(Rate::from_mbit(3)),
            state: State::Loaded,
            reason: Reason::Start,
            value: 0.0,
        };
        assert_eq!((said, controller.probe_every()), (vec![expected], None));
    }
}
