//! Declaration of the file of a shaper on a real interface.

use weir_core::{Framing, without_brackets};

use crate::file::field::{Definitions, Field, Form, Reader, choice, spec, word_field};
use crate::file::quantity::{rate_that, rate_words, time_that, time_words};
use crate::file::shaper::ModeWord;
use crate::file::written::{Value, Written, table, texts};

spec! {
    /// Settings of a shaper; all are optional.
    ShapeSpec {
        /// The way out of the device: `auto`, a rate such as `35mbit` that stays, or `none` to leave it alone.
        up: SideRate = SideRate::Auto,
        /// The way into the device: `auto`, a rate such as `35mbit` that stays, or `none` to leave it alone.
        down: SideRate = SideRate::Auto,
        /// On the way out `auto` never sets a higher rate.
        up_max: Option<ShapedRate>,
        /// On the way in `auto` never sets a higher rate.
        down_max: Option<ShapedRate>,
        /// Goal of `auto` that matters more: short delays or all of the rate.
        mode: ModeWord = ModeWord::Ping,
        /// Queue spec of the way out, in `tc` syntax.
        queue_up: String = USUAL_QUEUES[0].to_owned(),
        /// Queue spec of the way in, in `tc` syntax.
        queue_down: String = USUAL_QUEUES[1].to_owned(),
        /// How bytes are counted: a name of `tc-cake(8)`, or `auto` for what the device tells.
        framing: FramingName = FramingName(None),
        /// Whom to probe: `HOST` by ICMP, `udp:HOST[:PORT]` by UDP to a `weir serve`, `tcp:HOST:PORT` by how long a TCP
        /// connection takes to open.
        reflectors: Vec<ReflectorWords> = Vec::new(),
        /// File whose first line is the secret that servers among the reflectors ask for.
        auth: Option<String>,
        /// Backend that holds packets back.
        backend: BackendWord = BackendWord::Auto,
        /// Classes of packets: a file of rules, or the name of a shipped list.
        rules: Option<String>,
        /// Where what is learned of the line is kept from one run to the next: a file, `none`, or `auto` for the usual
        /// place.
        state: StatePlace = StatePlace::Usual,
        /// The shaper ends by itself after so long.
        time: Option<RunTime>,
    }
    check |shape| shape.check();
}

choice! {
    /// The part that holds packets back.
    BackendWord {
        /// The best available one.
        Auto = "auto",
        /// The kernel's own disciplines.
        Kernel = "kernel",
        /// Weir's own, on packets that the kernel hands over.
        Userspace = "userspace",
    }
}

impl ShapeSpec {
    fn check(&self) -> Result<(), String> {
        if self.up == SideRate::None && self.down == SideRate::None {
            return Err(
                "up `none` and down `none`: nothing would be shaped; leave one of them out"
                    .to_owned(),
            );
        }
        for (side, rate, max) in [("up", self.up, self.up_max), ("down", self.down, self.down_max)]
        {
            if let Some(ShapedRate(max)) = max
                && rate != SideRate::Auto
            {
                let (max, rate) = (rate_words(max), rate.words());
                return Err(format!(
                    "{side}_max {max}: it bounds `auto`, and {side} is `{rate}`; leave it out"
                ));
            }
        }
        let auto = [self.up, self.down].contains(&SideRate::Auto);
        if !auto && self.mode != ModeWord::Ping {
            return Err(format!(
                "mode {}: it is `auto`'s, and the rates are set; leave it out",
                self.mode.word()
            ));
        }
        Ok(())
    }
}

/// The rate of one way of a shaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideRate {
    /// Found by Weir's controller.
    Auto,
    /// None: that way is left alone.
    None,
    /// A rate that stays, in bit/s.
    Rate(u64),
}

impl SideRate {
    fn words(self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::None => "none".to_owned(),
            Self::Rate(bps) => rate_words(bps),
        }
    }
}

word_field!(
    SideRate,
    &["string"],
    |written| match &written.value {
        Value::Text(text) if text == "auto" => Ok(Self::Auto),
        Value::Text(text) if text == "none" => Ok(Self::None),
        _ => shaped_rate(written).map(Self::Rate),
    },
    |rate| rate.words().into()
);

/// A rate that a shaper may have, in bit/s: 100kbit or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShapedRate(pub u64);

word_field!(ShapedRate, &["string"], |written| shaped_rate(written).map(Self), |rate| rate_words(
    rate.0
)
.into());

fn shaped_rate(written: &Written) -> Result<u64, String> {
    let least = weir_rate_control::MIN_RATE.as_bps();
    rate_that(written, |bps| bps >= least, &format!("{} or more", rate_words(least)))
}

/// How long a shaper runs, in nanoseconds: a second or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime(pub u64);

word_field!(
    RunTime,
    &["string"],
    |written| time_that(written, |ns| ns >= 1_000_000_000, "1s or more").map(Self),
    |time| time_words(time.0).into()
);

/// Where what is learned of a line is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatePlace {
    /// In the usual place for state.
    Usual,
    /// Nowhere.
    None,
    /// In this file.
    File(String),
}

word_field!(
    StatePlace,
    &["string"],
    |written| match &written.value {
        Value::Text(text) if text == "auto" => Ok(Self::Usual),
        Value::Text(text) if text == "none" => Ok(Self::None),
        Value::Text(text) if !text.is_empty() => Ok(Self::File(text.clone())),
        _ => Err(format!("{}: write a file, `none` or `auto`", written.shown())),
    },
    |place| match place {
        Self::Usual => "auto".into(),
        Self::None => "none".into(),
        Self::File(file) => file.as_str().into(),
    }
);

/// The name of a framing; `None` for `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramingName(pub Option<&'static str>);

impl FramingName {
    /// The framing of that name; `None` for `auto`.
    #[must_use]
    pub fn framing(self) -> Option<Framing> {
        let named = Framing::NAMED.iter().find(|(name, _)| Some(*name) == self.0);
        named.map(|(_, framing)| *framing)
    }
}

impl Field for FramingName {
    fn read(written: &Written, reader: &mut Reader) -> Option<Self> {
        if written.value == Value::Text(AUTO.to_owned()) {
            return Some(Self(None));
        }
        let named = |name: &&str| written.value == Value::Text((*name).to_owned());
        match Framing::NAMED.iter().map(|(name, _)| *name).find(named) {
            Some(name) => Some(Self(Some(name))),
            None => reader.wanted(written, &format!("one of {}", framings().join(", "))),
        }
    }

    fn write(&self, _: Form) -> Written {
        self.0.unwrap_or(AUTO).into()
    }

    fn schema(_: &mut Definitions) -> Written {
        table([("enum", texts(framings()))])
    }
}

fn framings() -> Vec<&'static str> {
    std::iter::once(AUTO).chain(Framing::NAMED.iter().map(|(name, _)| *name)).collect()
}

const AUTO: &str = "auto";

/// Whom to probe, and by what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorWords {
    /// The way of probing.
    pub kind: ReflectorKind,
    /// Name or address of the host.
    pub host: String,
    /// Port of the server; 0 of a host that is probed by ICMP.
    pub port: u16,
}

/// A way of probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReflectorKind {
    /// ICMP echo.
    Icmp,
    /// UDP echo of a `weir serve`.
    Udp,
    /// The time that a TCP connection takes to open.
    Tcp,
}

word_field!(ReflectorWords, &["string"], |written| reflector(written), |reflector| {
    let ReflectorWords { kind, host, port } = reflector;
    let place =
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    match kind {
        ReflectorKind::Icmp => host.clone().into(),
        ReflectorKind::Udp => format!("udp:{place}").into(),
        ReflectorKind::Tcp => format!("tcp:{place}").into(),
    }
});

fn reflector(written: &Written) -> Result<ReflectorWords, String> {
    let Value::Text(text) = &written.value else {
        return Err(format!("{}: write a text in quotes", written.shown()));
    };
    let letters = text.chars().count();
    if letters > MAX_REFLECTOR_CHARS {
        return Err(format!(
            "{} of {letters} letters: write {MAX_REFLECTOR_CHARS} at most",
            written.shown()
        ));
    }
    let (kind, place) = match text.split_once(':') {
        Some(("udp", place)) => (ReflectorKind::Udp, host_and_port(place)?),
        Some(("tcp", place)) => (ReflectorKind::Tcp, split_port(place)?),
        _ => (ReflectorKind::Icmp, (host_in(text)?, 0)),
    };
    let (host, port) = place;
    if host.is_empty() {
        return Err(format!("{}: write the name or the address of a host", written.shown()));
    }
    Ok(ReflectorWords { kind, host, port })
}

/// Where a `weir serve` is: `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
///
/// # Errors
/// If it is none of these.
pub fn host_and_port(written: &str) -> Result<(String, u16), String> {
    let colons = written.matches(':').count();
    let bare = written.ends_with(']') || colons == 0 || (colons > 1 && !written.contains(']'));
    if bare { Ok((host_in(written)?, SERVE_PORT)) } else { split_port(written) }
}

fn split_port(written: &str) -> Result<(String, u16), String> {
    let (host, port) = written.rsplit_once(':').unwrap_or(("", written));
    match port_number(port) {
        Some(port) if !host.is_empty() => Ok((host_in(host)?, port)),
        _ => Err(format!(
            "`{}`: write HOST:PORT with a port from 1 to 65535, IPv6 as [HOST]:PORT",
            crate::file::written::head(written, MAX_REFLECTOR_CHARS)
        )),
    }
}

/// A host without the brackets in which an address of IPv6 may stand.
///
/// # Errors
/// If they are of no pair, or stand around anything else.
pub fn host_in(written: &str) -> Result<String, String> {
    without_brackets(written).map(str::to_owned).ok_or_else(|| {
        format!(
            "`{}`: brackets stand around an address of IPv6, such as [2001:db8::1]: write one so, or without brackets",
            crate::file::written::head(written, MAX_REFLECTOR_CHARS)
        )
    })
}

/// A port of up to five digits and nothing else.
pub(super) fn port_number(text: &str) -> Option<u16> {
    let plain = (1..=5).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten().filter(|port| *port > 0)
}

/// Queues of both ways where nothing else is asked for, out of the device first.
pub const USUAL_QUEUES: [&str; 2] = ["cake diffserv4 dual-srchost", "cake diffserv4 dual-dsthost"];

/// Port on which `weir serve` listens if nothing else is said.
pub const SERVE_PORT: u16 = 8080;

/// Characters of a reflector at most: its name has 253 (RFC 1035), besides a port and a method.
const MAX_REFLECTOR_CHARS: usize = 300;
