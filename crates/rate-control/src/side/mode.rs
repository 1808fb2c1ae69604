//! What the modes trade: delay for use.

use crate::contract::Mode;
use crate::quantities::Seconds;

/// Parameters in which the modes differ.
#[derive(Debug)]
pub(super) struct ModeParameters {
    /// Share of the capacity that is let through.
    pub share: f64,
    /// The same on the way out of a steady line, whose capacity was found again.
    pub steady_share: f64,
    /// Excess, beyond packets and jitter, above which there is a queue.
    pub threshold: Seconds,
    /// Time for which a rate is held on a steady line before more is tried.
    pub hold: Seconds,
    /// Multiple of that where delays vary for other reasons and probing has confirmed the rate.
    pub confirmed_holds: f64,
    /// Number of the first step of probing there, counted from zero: one that ends below the known capacity proves nothing.
    pub first_step_beside_foreign: u32,
}

impl ModeParameters {
    pub const fn of(mode: Mode) -> &'static Self {
        match mode {
            Mode::Ping => &PING,
            Mode::Bandwidth => &BANDWIDTH,
        }
    }
}

/// Mode "ping".
///
/// The share: 97 %, so that a queue of 10 ms is gone in a third of a second and, with the probing, 95 % of
/// the line is used; 98.5 % where nothing is left to drain, less the error of a measurement, 1 %.
///
/// The threshold: goals of 1.6 ms on average need it to show at 2 ms. The hold: 90 % of a line that became four
/// times as fast within 5 s, of which the nine steps take 1 s and TCP the rest.
static PING: ModeParameters = ModeParameters {
    share: 0.97,
    steady_share: 0.985,
    threshold: Seconds(0.002),
    hold: Seconds(2.0),
    confirmed_holds: 3.0,
    first_step_beside_foreign: 1,
};
/// Mode "bandwidth": nearly everything; a queue of one frame of a video call (10 ms in RFC 9330) is let stand.
///
/// What varies for other reasons leaves a line idle at times, which probing fills, so that it goes on.
static BANDWIDTH: ModeParameters = ModeParameters {
    share: 0.995,
    steady_share: 0.995,
    threshold: Seconds(0.008),
    hold: Seconds(2.0),
    confirmed_holds: 1.0,
    first_step_beside_foreign: 2,
};
