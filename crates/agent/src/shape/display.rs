//! What a running shaper shows: lines that change on a terminal, a line a second elsewhere.

use std::io::{IsTerminal, Write, stderr};

use weir_shape::View;

/// Shows views as they come.
pub(crate) struct Display {
    kind: Kind,
    /// Lines that stand on the terminal.
    shown: usize,
    /// When the next line is due, and the delays since the last one.
    next_ns: u64,
    delays: Vec<(u64, u64, u32)>,
}

#[derive(PartialEq, Eq)]
enum Kind {
    Nothing,
    Terminal,
    Lines,
}

impl Display {
    /// Has shown nothing yet; with `quiet` it never does.
    pub fn new(quiet: bool) -> Self {
        let kind = match quiet {
            true => Kind::Nothing,
            false if stderr().is_terminal() => Kind::Terminal,
            false => Kind::Lines,
        };
        Self { kind, shown: 0, next_ns: 0, delays: Vec::new() }
    }

    /// Shows a view.
    pub fn show(&mut self, view: &View) {
        match self.kind {
            Kind::Nothing => {}
            Kind::Terminal => {
                let lines = lines(view);
                let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
                self.write(&text, lines.len());
            }
            Kind::Lines => {
                self.delays.extend(&view.delays);
                if view.t_ns >= self.next_ns {
                    self.next_ns = view.t_ns + 1_000_000_000;
                    let delays = std::mem::take(&mut self.delays);
                    let line = View { delays, ..view.clone() }.line();
                    let _ = stderr().write_all(format!("{line}\n").as_bytes());
                }
            }
        }
    }

    /// Takes away what stands on the terminal.
    pub fn close(&mut self) {
        if self.kind == Kind::Terminal {
            self.write("", 0);
        }
    }

    /// Writes over what stands on the terminal.
    fn write(&mut self, text: &str, lines: usize) {
        let up = if self.shown == 0 { String::new() } else { format!("\x1b[{}A", self.shown) };
        // A terminal that is gone does not end a shaper.
        let _ = stderr().write_all(format!("{up}\r\x1b[J{text}").as_bytes());
        self.shown = lines;
    }
}

/// A view in lines for a terminal.
pub(crate) fn lines<S: AsRef<str>>(view: &View<S>) -> Vec<String> {
    let mut lines =
        vec![format!("{}, {:.0} s, {}", view.device, view.t_ns as f64 / 1e9, view.delay())];
    for (name, side) in view.named_sides() {
        let wait = side
            .counts
            .sojourn_ns
            .map_or(String::new(), |ns| format!(", {:.1} ms", ns as f64 / 1e6));
        lines.push(format!(
            "{name:4}  {:>14}  {:8.2} Mbit/s used  {}",
            side.rate(),
            side.load_bps as f64 / 1e6,
            side.condition(),
        ));
        lines.push(format!(
            "      {} packets wait{wait}; {} dropped, {} marked",
            side.counts.backlog_packets, side.counts.dropped, side.counts.marked
        ));
    }
    lines.extend(view.remarks());
    lines
}

#[cfg(test)]
mod tests {
    use weir_shape::SideView;

    use super::*;

    #[test]
    fn a_view_has_two_lines_for_each_side() {
        let side = SideView {
            rate_bps: Some(998_760_000),
            load_bps: 998_760_000,
            state: "backing_off",
            reason: "clear",
            value: 1280.0,
            unit: "ms",
            ..SideView::default()
        };
        let idle = SideView { state: "idle", ..SideView::default() };
        let view: View =
            View { device: "eth0".to_owned(), sides: [Some(side), Some(idle)], ..View::default() };
        let said = lines(&view);
        assert!(said[3].ends_with(" Mbit/s used  idle"), "nothing was decided yet: {}", said[3]);
        assert_eq!(said[0], "eth0, 0 s, no delay measured");
        assert_eq!(
            said[1],
            "up     998.76 Mbit/s    998.76 Mbit/s used  backing off (queue gone after 1280 ms)"
        );
        assert_eq!(said[2], "      0 packets wait; 0 dropped, 0 marked");
    }
}
