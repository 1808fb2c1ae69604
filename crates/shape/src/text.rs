//! Views, decisions and plans in words, and as metrics.

use std::fmt::Write as _;

use serde::Deserialize;
use weir_core::{Cells, Framing};
use weir_rate_control::{Control, Mode, Reason};

use crate::rules::{Class, Rules};
use crate::settings::{Backend, Settings, Target};
use crate::view::{SideView, View, median_rtt_ns};
use crate::{Choice, ShapeError};

impl View<String> {
    /// The view in a text of the control socket. Its words steer no terminal.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, ShapeError> {
        let view: Self = serde_json::from_str(text)
            .map_err(|error| ShapeError::new(format!("this is no view of a shaper: {error}")))?;
        let all = |texts: &[String]| texts.iter().map(|one| printable(one)).collect();
        let sides = view.sides.map(|side| {
            side.map(|side| SideView {
                state: printable(&side.state),
                reason: printable(&side.reason),
                unit: printable(&side.unit),
                ..side
            })
        });
        Ok(Self {
            sides,
            device: printable(&view.device),
            reflectors: all(&view.reflectors),
            trouble: view.trouble.as_deref().map(printable),
            warnings: all(&view.warnings),
            ..view
        })
    }
}

impl<S: AsRef<str>> View<S> {
    /// The view in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mut parts = vec![format!("{:7.1} s", self.t_ns as f64 / 1e9)];
        for (name, side) in self.named_sides() {
            let used = side.load_bps as f64 / 1e6;
            parts.push(format!(
                "{name} {}, {used:.2} Mbit/s used, {}",
                side.rate(),
                side.condition()
            ));
        }
        parts.push(self.delay());
        parts.extend(self.remarks());
        parts.join("; ")
    }

    /// The sides that are shaped, by the names of their options.
    pub fn named_sides(&self) -> impl Iterator<Item = (&'static str, &SideView<S>)> {
        SIDES.into_iter().zip(&self.sides).filter_map(|(name, side)| Some((name, side.as_ref()?)))
    }

    /// The median of the round trips since the last view, or else the last one that is known with its age, in words.
    #[must_use]
    pub fn delay(&self) -> String {
        let said = |ns: u64| format!("delay {:.1} ms", ns as f64 / 1e6);
        match (self.median_rtt_ns(), self.known_delay()) {
            (Some(ns), _) => said(ns),
            (None, Some((age_ns, ns))) => {
                format!("{} ({} s ago)", said(ns), age_in_words(age_ns))
            }
            (None, None) => "no delay measured".to_owned(),
        }
    }

    /// The median of the round trips since the last view, ns; `None` if there are none.
    #[must_use]
    pub fn median_rtt_ns(&self) -> Option<u64> {
        median_rtt_ns(&self.delays)
    }

    /// How long ago delays were shown last, and their median, both in ns; `None` where that is no longer of use.
    fn known_delay(&self) -> Option<(u64, u64)> {
        let (then, median) = self.last_delay?;
        let age_ns = self.t_ns.saturating_sub(then);
        (age_ns <= MAX_DELAY_AGE_NS).then_some((age_ns, median))
    }

    /// Remarks that a reader needs beside the numbers.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let mut said: Vec<String> = self.troubles().cloned().collect();
        if self.late_ns >= LATE_NS {
            let late_ms = self.late_ns as f64 / 1e6;
            said.push(format!("this machine is busy: the shaper was {late_ms:.0} ms late"));
        }
        said.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        said
    }

    /// What is said of the probes, if anything is.
    fn troubles(&self) -> impl Iterator<Item = &String> {
        self.trouble.iter().filter(|why| !why.is_empty())
    }

    /// The view as metrics in Prometheus' text format, version 0.0.4.
    #[must_use]
    pub fn metrics(&self) -> String {
        let device = self.device.replace('\\', "\\\\").replace('"', "\\\"");
        let mut text = Metrics { device, text: String::new() };
        let number = |value: u64| value.to_string();
        text.each(self, "rate_bps", "gauge", "Rate; absent while everything passes.", &|side| {
            side.rate_bps
        });
        text.each(self, "load_bps", "gauge", SENT, &|side| Some(side.load_bps));
        text.each(self, "bytes_total", "counter", "Bytes of that traffic.", &|side| {
            Some(side.counts.bytes)
        });
        text.each(self, "backlog_bytes", "gauge", "What waits.", &|side| {
            Some(side.counts.backlog_bytes)
        });
        text.each(self, "dropped_packets_total", "counter", "Packets dropped.", &|side| {
            Some(side.counts.dropped)
        });
        text.each(self, "marked_packets_total", "counter", "Packets marked.", &|side| {
            Some(side.counts.marked)
        });
        let seconds = |ns: u64| format!("{:?}", ns as f64 / 1e9);
        let known = self.known_delay().map(|(_, ns)| ns);
        let median = self.median_rtt_ns().or(known).map(seconds);
        text.one(
            "delay_seconds",
            "gauge",
            "Median round trip of the last 0.2 s in which one was measured, within 90 s; absent without one.",
            median,
        );
        text.one(
            "late_seconds",
            "gauge",
            "How late the shaper itself was at worst.",
            Some(seconds(self.late_ns)),
        );
        text.one(
            "missed_packets_total",
            "counter",
            "Packets that passed unseen.",
            Some(number(self.missed)),
        );
        let meaning = "How many things keep it from helping; `shape status` names them.";
        let troubles = self.troubles().count() + self.warnings.len();
        text.one("warnings", "gauge", meaning, Some(number(troubles as u64)));
        text.text
    }
}

/// Metrics that are written.
struct Metrics {
    device: String,
    text: String,
}

impl Metrics {
    fn head(&mut self, name: &str, kind: &str, meaning: &str) {
        _ = writeln!(
            self.text,
            "# HELP weir_shape_{name} {meaning}\n# TYPE weir_shape_{name} {kind}"
        );
    }

    fn value(&mut self, name: &str, labels: &str, value: &str) {
        _ = writeln!(self.text, "weir_shape_{name}{{device=\"{}\"{labels}}} {value}", self.device);
    }

    /// A metric of the device.
    fn one(&mut self, name: &str, kind: &str, meaning: &str, value: Option<String>) {
        self.head(name, kind, meaning);
        if let Some(value) = value {
            self.value(name, "", &value);
        }
    }

    /// A metric of each side.
    fn each<S: AsRef<str>>(
        &mut self,
        view: &View<S>,
        name: &str,
        kind: &str,
        meaning: &str,
        value: &dyn Fn(&SideView<S>) -> Option<u64>,
    ) {
        self.head(name, kind, meaning);
        for (side, shown) in METRIC_SIDES.into_iter().zip(&view.sides) {
            if let Some(value) = shown.as_ref().and_then(value) {
                self.value(name, &format!(",side=\"{side}\""), &value.to_string());
            }
        }
    }
}

impl<S: AsRef<str>> SideView<S> {
    /// The rate in words.
    #[must_use]
    pub fn rate(&self) -> String {
        self.rate_bps.map_or_else(|| "open".to_owned(), |bps| format!("{} Mbit/s", mbps(bps)))
    }

    /// The reason of the state in words.
    #[must_use]
    pub fn reason_in_words(&self) -> String {
        in_words(self.reason.as_ref(), self.value, self.unit.as_ref())
    }

    /// The state with its reason, if there is one, in words.
    #[must_use]
    pub fn condition(&self) -> String {
        let state = self.state.as_ref().replace('_', " ");
        if self.reason.as_ref().is_empty() {
            state
        } else {
            format!("{state} ({})", self.reason_in_words())
        }
    }
}

/// A decision of a log, which is a line of JSON, in one line for people.
///
/// # Errors
/// If it is none.
pub fn decision_line(line: &str) -> Result<String, ShapeError> {
    #[derive(Deserialize)]
    struct Logged {
        t: u64,
        decision: Decided,
    }
    #[derive(Deserialize)]
    struct Decided {
        side: String,
        rate_bps: Option<u64>,
        state: String,
        reason: String,
        value: f64,
    }
    let Logged { t, decision } = serde_json::from_str(line)
        .map_err(|error| ShapeError::input(format!("this is no decision of a log: {error}")))?;
    let known = Reason::ALL.into_iter().find(|known| known.name() == decision.reason);
    let unit = known.map_or("", Reason::unit);
    let rate =
        decision.rate_bps.map_or_else(|| "open".to_owned(), |bps| format!("{} Mbit/s", mbps(bps)));
    Ok(format!(
        "{:9.2} s  {:4} {rate:15} {:12} {}",
        t as f64 / 1e9,
        decision.side,
        decision.state.replace('_', " "),
        in_words(&decision.reason, decision.value, unit)
    ))
}

/// A reason of the controller in words, with its number.
fn in_words(reason: &str, value: f64, unit: &str) -> String {
    let Some((_, words)) = REASONS.iter().find(|(name, _)| *name == reason) else {
        return reason.to_owned();
    };
    words.replace("{value}", format!("{} {unit}", three_digits(value)).trim())
}

/// Lines that say what a shaper of these settings would do, and what would become of the machine.
#[must_use]
pub fn plan_lines(settings: &Settings, choice: &Choice, framing_why: Option<&str>) -> Vec<String> {
    let backend = if choice.backend == Backend::Kernel { "kernel" } else { "userspace" };
    let mut lines = vec![format!("backend {backend}: {}", choice.why)];
    for (name, queue) in SIDES.into_iter().zip(&choice.queues) {
        lines.push(format!("{name}: {}", queue.as_deref().unwrap_or("left alone")));
    }
    lines.push(format!("rates: {}", rates_in_words(&settings.control)));
    let beginning = settings.clone().recall();
    lines.extend(
        [beginning.trouble, Some(beginning.words)]
            .into_iter()
            .flatten()
            .filter(|line| !line.is_empty()),
    );
    let why = framing_why.map_or_else(String::new, |why| format!(" ({why})"));
    lines.push(format!("framing: {}{why}", framing_in_words(&settings.framing)));
    let probed: Vec<String> = settings.reflectors.iter().map(Target::place).collect();
    lines.push(if probed.is_empty() {
        "probes: public resolvers, and the hosts that the traffic goes to".to_owned()
    } else {
        format!("probes: {}", probed.join(", "))
    });
    lines.extend(settings.rules.iter().flat_map(rules_in_words));
    lines.extend(changes(choice.backend, settings));
    lines
}

/// How the bytes of a packet are counted.
fn framing_in_words(framing: &Framing) -> String {
    let mut words = format!("{} bytes a packet", framing.overhead_bytes);
    if framing.minimum_bytes > 0 {
        words += &format!(", {} at least", framing.minimum_bytes);
    }
    words
        + match framing.cells {
            Cells::None => "",
            Cells::Atm => ", in cells of 53 bytes that carry 48",
            Cells::Ptm => ", and one for every 64",
        }
}

/// The names of the rules that give each class, the most urgent first.
fn rules_in_words(rules: &Rules) -> Vec<String> {
    let of_class = |class: Class| {
        let mine = rules.rules.iter().filter(|rule| rule.class == class);
        let names: Vec<String> = mine.map(|rule| format!("`{}`", rule.name)).collect();
        (!names.is_empty()).then(|| format!("rules for {}: {}", class.name(), names.join(", ")))
    };
    Class::ALL.into_iter().rev().filter_map(of_class).collect()
}

/// Changes that would be made on this machine, and what becomes of them.
fn changes(backend: Backend, settings: &Settings) -> Vec<String> {
    let table = format!("weir-shape-{}", settings.device);
    if backend == Backend::Userspace {
        return vec![format!("table that would be made, and goes with the process: inet {table}")];
    }
    let back = "what is at the device's root and way in would be put back at the end".to_owned();
    let tables = format!(
        "tables that would be made for rules, and go with the process: inet and netdev {table}"
    );
    if settings.rules.is_none() { vec![back] } else { vec![back, tables] }
}

/// How rates are found, in words.
fn rates_in_words(control: &Control) -> String {
    let (found, rates, stays) = match control {
        Control::Auto(auto) => {
            let mode = if auto.mode == Mode::Ping { "ping" } else { "bandwidth" };
            let rates =
                [(auto.egress_max_bps, auto.egress_bps), (auto.ingress_max_bps, auto.ingress_bps)];
            (format!("found by `auto`, mode {mode}"), rates, "fixed at ")
        }
        Control::Fixed { egress_bps, ingress_bps } => {
            ("fixed".to_owned(), [(None, *egress_bps), (None, *ingress_bps)], "")
        }
        Control::CakeAutorate { .. } => {
            ("found by `cake-autorate`".to_owned(), [(None, None); 2], "")
        }
    };
    let mut said = vec![found];
    for (name, (max, rate)) in SIDES.into_iter().zip(rates) {
        for (how, bps) in [("at most ", max), (stays, rate)] {
            said.extend(
                bps.map(|bps| format!("{name} {how}{} Mbit/s", six_digits(bps as f64 / 1e6))),
            );
        }
    }
    said.join(", ")
}

impl Target {
    /// As `--reflector` takes it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Icmp(host) => host.to_string(),
            Self::Udp(place) => format!("udp:{place}"),
            Self::Tcp(place) => format!("tcp:{place}"),
        }
    }

    /// Its address, with the port if there is one.
    fn place(&self) -> String {
        match self {
            Self::Icmp(host) => host.to_string(),
            Self::Udp(place) | Self::Tcp(place) => place.to_string(),
        }
    }
}

/// A text of somebody else, on one line and without what steers a terminal or turns the order of its characters.
pub(crate) fn printable(text: &str) -> String {
    let steers = |sign: char| {
        sign.is_control()
            || matches!(sign, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.replace(steers, "?")
}

pub(crate) fn mbps(bps: u64) -> String {
    format!("{:.2}", bps as f64 / 1e6)
}

/// An age in seconds: to a tenth while it is short.
fn age_in_words(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 10.0 { format!("{seconds:.1}") } else { format!("{seconds:.0}") }
}

/// A number with three digits that count, or with all of those before its point.
fn three_digits(value: f64) -> String {
    digits(value, 3)
}

fn six_digits(value: f64) -> String {
    digits(value, 6)
}

fn digits(value: f64, count: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.*e}", count.unsigned_abs() as usize - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    if exponent < -4 {
        return format!("{}e-{:02}", bare(mantissa), exponent.abs());
    }
    bare(&format!("{value:.*}", (count - 1 - exponent).max(0).unsigned_abs() as usize))
}

/// The sides by the names of their options.
pub(crate) const SIDES: [&str; 2] = ["up", "down"];

/// The sides as labels of metrics, which stay what dashboards ask for (docs/shape.md).
const METRIC_SIDES: [&str; 2] = ["egress", "ingress"];

/// What the load is: a line drops what is sent into it above its rate, which nobody here sees.
const SENT: &str =
    "Traffic: what is sent into the line on the way out, what comes out of it on the way in.";

/// How old a delay may be that is shown: while the line sleeps there is a probe a minute.
const MAX_DELAY_AGE_NS: u64 = 90_000_000_000;
/// As much as the increase that a shaper is to keep delays below.
pub const LATE_NS: u64 = 5_000_000;

/// Meanings of the controller's reasons (docs/rate-control.md); `{value}` is the number of the reason.
const REASONS: &[(&str, &str)] = &[
    ("start", "started"),
    ("delay", "queue of {value}"),
    ("overdue", "answers {value} overdue"),
    ("clear", "queue gone after {value}"),
    ("probe", "tries {value} more"),
    ("unused", "{value} of it used"),
    ("load", "traffic of {value}"),
    ("idle", "traffic went"),
    ("test", "is it a queue?"),
    ("reroute", "path {value} longer"),
    ("foreign", "{value} that is no queue"),
    ("silence", "no answer for {value}"),
    ("resume", "goes on after {value}"),
    ("age", "not measured for {value}"),
    ("proof", "for the proof"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_is_told_in_the_words_of_a_view() {
        let said = |reason: &str, value: f64| {
            let decision = serde_json::json!({
                "side": "up", "rate_bps": 8_000_000, "state": "backing_off", "reason": reason, "value": value
            });
            let line = serde_json::json!({ "t": 1_500_000_000, "decision": decision });
            decision_line(&line.to_string()).unwrap()
        };
        let begins = "     1.50 s  up   8.00 Mbit/s     backing off  ";
        assert_eq!(said("delay", 31.2), format!("{begins}queue of 31.2 ms"));
        assert_eq!(said("load", 0.576), format!("{begins}traffic of 0.576 Mbit/s"));
        assert_eq!(said("unused", 66.9), format!("{begins}66.9 % of it used"));
        // Of a version that knows more.
        assert_eq!(said("unheard", 1.0), format!("{begins}unheard"));
    }

    #[test]
    fn a_framing_is_told_with_its_cells_and_its_least_packet() {
        assert_eq!(framing_in_words(&Framing::NONE), "0 bytes a packet");
        assert_eq!(framing_in_words(&Framing::ETHERNET), "38 bytes a packet, 84 at least");
        let atm = "32 bytes a packet, in cells of 53 bytes that carry 48";
        assert_eq!(framing_in_words(&Framing::ATM), atm);
        assert_eq!(framing_in_words(&Framing::PTM), "22 bytes a packet, and one for every 64");
    }

    #[test]
    fn numbers_have_digits_that_count_and_no_exponent_if_large() {
        for (value, text) in [
            (0.0, "0"),
            (1280.0, "1280"),
            (-1280.0, "-1280"),
            (123_456.7, "123457"),
            (300.0, "300"),
            (12.345, "12.3"),
            (0.5, "0.5"),
            (0.000_012_3, "1.23e-05"),
            (999.4, "999"),
            (999.6, "1000"),
            (0.000_1, "0.0001"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(three_digits(value), text, "{value}");
        }
        assert_eq!(six_digits(8.0), "8");
        assert_eq!(six_digits(2_500_000.0), "2500000");
        assert_eq!(six_digits(0.123_456_7), "0.123457");
    }

    #[test]
    fn rules_are_named_by_the_class_that_they_give() {
        let rule = |name: &str, class: &str| serde_json::json!({ "name": name, "class": class });
        let rules = [rule("copies", "bulk"), rule("calls", "voice"), rule("names, time", "voice")];
        let rules: Rules = serde_json::from_value(serde_json::json!({ "rules": rules })).unwrap();
        let said = ["rules for voice: `calls`, `names, time`", "rules for bulk: `copies`"];
        assert_eq!(rules_in_words(&rules), said);
    }

    #[test]
    fn a_view_of_somebody_else_steers_no_terminal() {
        let hostile = "\u{1b}[31mred\u{9b}2J\r\u{202e}";
        let said_of_side =
            serde_json::json!({ "state": hostile, "reason": hostile, "unit": hostile });
        let view = serde_json::json!({
            "device": hostile, "reflectors": [hostile], "trouble": hostile, "warnings": [hostile],
            "sides": [said_of_side, null],
        });
        let read = View::parse(&view.to_string()).unwrap();
        let said = "?[31mred?2J??";
        let side = read.sides[0].as_ref().unwrap();
        let words = [&read.device, &read.reflectors[0], &read.warnings[0], &side.state];
        assert_eq!(words.map(String::as_str), [said; 4]);
        assert_eq!((read.trouble.as_deref(), side.unit.as_str()), (Some(said), said));
        let shown = read.line() + &read.metrics().replace('\n', "") + &format!("{read:?}");
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }

    #[test]
    fn between_two_probes_the_last_delay_is_told_with_its_age() {
        let last_delay = Some((10_000_000_000, 23_140_000));
        let at = |t_ns| View::<&str> { t_ns, last_delay, ..View::default() };
        assert_eq!(at(10_500_000_000).delay(), "delay 23.1 ms (0.5 s ago)");
        assert_eq!(at(70_000_000_000).delay(), "delay 23.1 ms (60 s ago)", "while the line sleeps");
        assert_eq!(at(100_000_000_001).delay(), "no delay measured", "too old");
        let measured = "weir_shape_delay_seconds{device=\"\"} 0.02314\n";
        assert!(at(70_000_000_000).metrics().contains(measured));
        assert!(!at(100_000_000_001).metrics().contains("weir_shape_delay_seconds{"));
        let fresh = View { delays: vec![(0, 15_000_000, 0)], ..at(10_500_000_000) };
        assert_eq!(fresh.delay(), "delay 15.0 ms");
        assert_eq!(View::<&str>::default().delay(), "no delay measured");
    }

    #[test]
    fn what_is_done_in_place_of_control_is_named() {
        let load_bps = 8_130_000;
        let (state, reason) = crate::view::PASSED_THROUGH;
        let open = SideView { load_bps, state, reason, ..SideView::default() };
        let fixed = SideView {
            load_bps,
            rate_bps: Some(5_000_000),
            state: crate::view::FIXED,
            ..SideView::default()
        };
        let view: View = View { sides: [Some(open), Some(fixed)], ..View::default() };
        assert_eq!(
            view.line(),
            "    0.0 s; up open, 8.13 Mbit/s used, passed through (for the proof); down 5.00 Mbit/s, 8.13 Mbit/s \
             used, fixed; no delay measured"
        );
    }

    #[test]
    fn a_view_is_the_same_after_it_was_read_again() {
        let side = SideView {
            rate_bps: Some(8_000_000),
            state: "backing_off",
            reason: "clear",
            value: 1280.0,
            unit: "ms",
            ..SideView::default()
        };
        let view: View = View {
            t_ns: 8_000_000_000,
            device: "eth0".to_owned(),
            sides: [Some(side), None],
            delays: vec![(0, 15_000_000, 0)],
            warnings: vec!["no".to_owned()],
            late_ns: 7_000_000,
            ..View::default()
        };
        let read = View::parse(&serde_json::to_string(&view).unwrap()).unwrap();
        let said = "    8.0 s; up 8.00 Mbit/s, 0.00 Mbit/s used, backing off (queue gone after 1280 ms); delay 15.0 ms; \
                    this machine is busy: the shaper was 7 ms late; warning: no";
        assert_eq!([view.line(), read.line()], [said, said]);
        assert_eq!(view.metrics(), read.metrics());
        assert!(read.metrics().contains("weir_shape_delay_seconds{device=\"eth0\"} 0.015\n"));
    }

    #[test]
    fn the_metric_of_warnings_counts_all_that_status_names() {
        let said = |text: &str| Some(text.to_owned());
        for (trouble, warnings, count) in [
            (None, vec![], 0),
            (said(""), vec![], 0),
            (said("no answer to probes from 192.0.2.1"), vec![], 1),
            (said("no answer to probes from 192.0.2.1"), vec!["no".to_owned()], 2),
        ] {
            let view: View = View { trouble, warnings, ..View::default() };
            let line = format!("\nweir_shape_warnings{{device=\"\"}} {count}\n");
            assert!(view.metrics().contains(&line), "{}", view.metrics());
            assert_eq!(view.remarks().len(), count);
        }
    }
}
