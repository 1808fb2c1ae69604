//! Traffic conditioners: they look at packets, colour them, and forward all of them.
//!
//! A marker stands in front of a hop's queue. The colour travels in the packet's code point ([`Colour`]), so
//! that a queue behind, at this hop or a later one, can tell packets within the profile from others. A marker
//! is written as a queue is, by name and parameters: `token_bucket tokens 296000 interval 400ms`.

mod bucket;
mod fair;
mod first_generation;
mod interval;
mod tcp_friendly;
mod token_bucket;
mod tricolour;
mod tswtcm;

use weir_core::{Duration, Packet, Time};

use crate::Device;
use crate::colour::Colour;
use crate::contract::DropSink;
use crate::tc::{
    self, Declared, Param, Record, SpecError, check_text, did_you_mean, number, size, time,
};

/// Every marker, in the order in which `weir list markers` shows them.
pub static MARKERS: &[&MarkerKind] = &[
    &token_bucket::TOKEN_BUCKET,
    &tcp_friendly::TCP_FRIENDLY,
    &first_generation::TCP_FRIENDLY_1,
    &fair::FAIR,
    &tricolour::SRTCM,
    &tricolour::TRTCM,
    &tswtcm::TSWTCM,
];

/// Description of a marker in the registry: name, source, parameters.
#[derive(Debug)]
pub struct MarkerKind {
    /// Its name.
    pub name: &'static str,
    /// Summary in one line.
    pub summary: &'static str,
    /// Source: RFC, draft or paper.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Specs on which the tests that all markers share are run.
    pub examples: &'static [&'static str],
    build: Build,
}

/// Makes a marker from what was written, in front of a port on a device.
type Build = fn(&MarkerSpec, &Device) -> Result<Marker, SpecError>;

/// A marker as it was written; its name is known, its values are not yet read.
#[derive(Clone, Debug)]
pub struct MarkerSpec {
    kind: &'static MarkerKind,
    words: Vec<String>,
}

/// A marker at work.
pub struct Marker {
    meter: Box<dyn Meter>,
    class: u8,
}

/// A marker's algorithm, which decides the colour of each packet. A pure state machine: times never run backwards.
trait Meter: Send {
    fn colour(&mut self, packet: &Packet, about: &dyn About, now: Time) -> Colour;

    /// Whether it asks for [`About::window`].
    fn needs_window(&self) -> bool {
        false
    }
}

/// The owner of the packets, as a marker sees it: what [`DropSink::tcp_header`] tells, and the sender's window.
pub trait About: DropSink {
    /// The congestion window of the packet's sender, in segments. Only a simulator knows it.
    fn window(&self, packet: &Packet) -> Option<u32>;
}

impl MarkerSpec {
    /// Reads a marker's name and words.
    ///
    /// # Errors
    /// If there is no marker of that name. Values are checked by [`build`](Self::build).
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        check_text(text)?;
        let mut words = text.split_whitespace();
        let name = words
            .next()
            .ok_or_else(|| SpecError::new("an empty marker: name one, such as `token_bucket`"))?;
        let kind = MARKERS.iter().find(|kind| kind.name == name).copied().ok_or_else(|| {
            let near = did_you_mean(name, MARKERS.iter().map(|kind| kind.name));
            let near = near.unwrap_or_else(|| {
                let known: Vec<_> = MARKERS.iter().map(|kind| kind.name).collect();
                format!(" (known: {})", known.join(", "))
            });
            SpecError::new(format!("unknown marker `{name}`{near}"))
        })?;
        Ok(Self { kind, words: words.map(str::to_owned).collect() })
    }

    /// Makes the marker, in front of a port on `device`.
    ///
    /// # Errors
    /// If a word is no parameter, or a value is not of its parameter's kind or out of range.
    pub fn build(&self, device: &Device) -> Result<Marker, SpecError> {
        (self.kind.build)(self, device)
    }

    /// Its parameters, as `R` declares them.
    fn read<R: Record>(&self, device: &Device) -> Result<R, SpecError> {
        tc::read(self.kind.name, &self.words, device)
    }
}

impl Marker {
    /// A marker whose code points are of that assured forwarding `class`.
    fn new(meter: impl Meter + 'static, class: u8) -> Self {
        Self { meter: Box::new(meter), class }
    }

    /// Colours `packet`, which arrives at `now`.
    pub fn mark(&mut self, packet: &mut Packet, about: &dyn About, now: Time) {
        packet.dscp = self.meter.colour(packet, about, now).dscp(self.class);
    }

    /// Whether it needs to know the sender's window, which only a simulator does.
    #[must_use]
    pub fn needs_window(&self) -> bool {
        self.meter.needs_window()
    }
}

/// Tokens that a packet costs.
const fn cost(packet: &Packet, uncounted: u32) -> u64 {
    packet.ip_len().saturating_sub(uncounted) as u64
}

const CLASS: Declared<u8> = number("class", 1, 4)
    .default("1")
    .means("assured forwarding class of the code points: 1 gives AF11, AF12 and AF13");

/// The tokens of the thesis are 200 times 1480, the payload of a full IP packet on Ethernet.
const UNCOUNTED: Declared<u32> =
    number("bytes", 0, 1_000).default("20").means("bytes of each IP packet that cost no tokens");

/// Lo Monaco's thesis, section 3.3.
const TOKENS: Declared<u64> =
    size().default("296000").means("bytes that may be green in each interval");

/// Length of an interval: Lo Monaco's thesis, section 3.3.
const INTERVAL: Declared<Duration> = time().default("400ms").means("how often tokens come in");
