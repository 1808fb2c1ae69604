//! A [log](crate::log) decided anew: its controller, or another, over all that went into it.

use weir_core::Time;
use weir_rate_control::{AutoSettings, Control, Controller, Decision, Mode, Traffic};

use crate::ShapeError;
use crate::log::{Head, Line, MAX_TIME_NS, VERSION, What, decided, json, whole};
use crate::text::SIDES;

/// Runs the controller of the log in `text`, or `auto` in `mode` and else as the log's, over what went into
/// it. `show` is given each decision as a line of the log; with the log's own controller they are those of the
/// log.
///
/// Returns how many decisions the log has, how many came out, and how many of them are the same.
///
/// # Errors
/// If `text` is no log: at which line.
pub fn replay(
    text: &str,
    mode: Option<Mode>,
    show: &mut dyn FnMut(&str),
) -> Result<[usize; 3], ShapeError> {
    let bad = |number: usize, error: &dyn std::fmt::Display| {
        // An error of JSON names what it does not know as that was written, line ends included.
        let error = error.to_string().replace(char::is_control, " ");
        ShapeError::input(format!("line {number} is not of a shaper's log: {error}"))
    };
    let mut lines = text.lines().zip(1..);
    let (first, _) = lines.next().ok_or_else(|| bad(1, &"there is none"))?;
    let head: Head = serde_json::from_str(first).map_err(|error| bad(1, &error))?;
    if head.weir_shape != VERSION {
        return Err(bad(1, &format!("its version is {}, and {VERSION} is read", head.weir_shape)));
    }
    head.settings.control.check().map_err(|error| bad(1, &error))?;
    let control = match (mode, head.settings.control) {
        (None, control) => control,
        (Some(mode), Control::Auto(auto)) => Control::Auto(AutoSettings { mode, ..auto }),
        (Some(mode), _) => Control::Auto(AutoSettings { mode, ..AutoSettings::default() }),
    };
    let mut run = Replay {
        controller: control.build(),
        open: head.settings.open,
        reached: Time::ZERO,
        shaped: None,
        counted: [None; 2],
        decided: Vec::new(),
    };
    let mut logged = Vec::new();
    for (line, number) in lines {
        match serde_json::from_str::<Line>(line) {
            Ok(line @ Line { what: What::Decision { .. }, .. }) => logged.push(Some(line)),
            Ok(Line { t, what }) => {
                let now = Time::from_nanos(t);
                run.check(now, &what).map_err(|error| bad(number, &error))?;
                run.feed(now, &what, &control, show);
            }
            // The process was ended while it wrote.
            Err(_) if !text.ends_with('\n') && text.lines().count() == number => break,
            Err(error) => return Err(bad(number, &error)),
        }
    }
    let same = logged.iter().zip(&run.decided).filter(|(one, other)| one == other).count();
    Ok([logged.len(), run.decided.len(), same])
}

struct Replay {
    controller: Box<dyn Controller>,
    open: bool,
    /// The time of the last line.
    reached: Time,
    /// The sides that have counters at every tick.
    shaped: Option<[bool; 2]>,
    /// The counters of the last tick, since the controller began.
    counted: [Option<(u64, u64, u64)>; 2],
    /// As they are read again; `None` if one cannot be, which then is in no log.
    decided: Vec<Option<Line>>,
}

impl Replay {
    /// Refuses what no shaper writes: times and counters that go back, what lies ahead of its own line, and sides that
    /// come and go.
    fn check(&mut self, now: Time, what: &What) -> Result<(), String> {
        let (t, reached) = (now.as_nanos(), self.reached.as_nanos());
        if t < reached {
            return Err(format!(
                "its time {t} ns is before that of the line before it, {reached} ns"
            ));
        }
        if t > MAX_TIME_NS {
            return Err(format!("its time {t} ns is later than {MAX_TIME_NS} ns"));
        }
        self.reached = now;
        match *what {
            What::Delay(heard) => heard.check(t),
            What::Delays(ref all) => all.iter().try_for_each(|&short| whole(short).check(t)),
            What::Late(since) if since > t => {
                Err(format!("the shaper is late since {since} ns, which is after {t} ns"))
            }
            What::Open(_) => {
                self.counted = [None; 2];
                Ok(())
            }
            What::Tick(counters) => self.count(counters),
            _ => Ok(()),
        }
    }

    fn count(&mut self, counters: [Option<(u64, u64, u64)>; 2]) -> Result<(), String> {
        let shaped = counters.map(|side| side.is_some());
        let always = *self.shaped.get_or_insert(shaped);
        if let Some(side) = (0..2).find(|&side| shaped[side] != always[side]) {
            let [here, before] =
                if shaped[side] { ["has", "had none"] } else { ["has no", "had some"] };
            return Err(format!(
                "`{}` {here} counters at this tick and {before} before: a side is shaped from start to end, or never",
                SIDES[side]
            ));
        }
        for (before, now) in self.counted.iter_mut().zip(counters) {
            if let (Some(before), Some(now)) = (*before, now)
                && (now.0 < before.0 || now.1 < before.1)
            {
                return Err(format!(
                    "its counters {} bytes, {} packets are below those before, {} and {}",
                    now.0, now.1, before.0, before.1
                ));
            }
            *before = now;
        }
        Ok(())
    }

    fn feed(&mut self, now: Time, what: &What, control: &Control, show: &mut dyn FnMut(&str)) {
        match *what {
            What::Suspended(suspended) => self.open = suspended,
            What::Open(open) => {
                self.open = open;
                self.controller = control.build();
            }
            // A controller that is suspended hears of nothing.
            _ if self.open => {}
            What::Late(since) => self.controller.on_late(Time::from_nanos(since), now),
            What::Sent(source) => self.controller.on_sent(source, now),
            What::Delay(heard) => self.controller.on_delay(&heard.delay(), now),
            What::Delays(ref all) => {
                all.iter().for_each(|&short| self.controller.on_delay(&whole(short).delay(), now));
            }
            What::Tick(counters) => {
                let traffic = counters.map(|it| {
                    it.map(|(bytes, packets, backlog_bytes)| Traffic {
                        bytes,
                        packets,
                        backlog_bytes,
                    })
                });
                let mut decide = |decision: Decision| {
                    let line = json(&Line { t: now.as_nanos(), what: decided(&decision) });
                    show(&line);
                    self.decided.push(serde_json::from_str(&line).ok());
                };
                self.controller.on_tick(&traffic, now, &mut decide);
            }
            What::Warning(_) | What::Decision { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_core::Duration;
    use weir_rate_control::{Delay, Measured};

    use super::*;
    use crate::log::Log;
    use crate::log::tests::settings;
    use crate::settings::Settings;

    /// A proof lets everything pass at first and now and then; what the controller knew before, it knows after.
    #[test]
    fn a_replay_suspends_its_controller_as_the_shaper_did() {
        let control = Control::Auto(AutoSettings::default());
        let settings = Settings { open: true, ..settings(control) };
        let file =
            std::env::temp_dir().join(format!("weir-shape-log-proof-{}", std::process::id()));
        let mut log = Log::create(&file, &settings).unwrap();
        let mut controller = control.build();
        let mut decisions = Vec::new();
        // A line of 10 Mbit/s on which 12 arrive after some seconds, until the shaper holds them back.
        let (mut queue_ns, mut bytes) = (0_u64, 0);
        let mut rate_bps = 12_000_000;
        for step in 0..1500_u64 {
            let now = Time::from_millis(20 * step);
            let open = step < 200 || (600..1000).contains(&step);
            if [200, 600, 1000].contains(&step) {
                log.suspended(open, now);
            }
            let sent_bps = match step {
                0..300 => 50_000,
                _ if open => 12_000_000,
                _ => rate_bps,
            };
            bytes += sent_bps / 400;
            queue_ns = (queue_ns + sent_bps * 2).saturating_sub(20_000_000).min(200_000_000);
            if open {
                continue;
            }
            let rtt = Duration::from_nanos(10_000_000 + queue_ns);
            let sent = now.saturating_sub(rtt);
            controller.on_sent(0, now);
            log.sent(0, now);
            let delay = Delay { source: 0, sent, rtt, one_way: None, by: Measured::Answer };
            controller.on_delay(&delay, now);
            log.delay(&delay, now);
            let traffic = [Some(Traffic { bytes, packets: bytes / 1500, backlog_bytes: 0 }), None];
            log.tick(&traffic, now);
            controller.on_tick(&traffic, now, &mut |decision| {
                rate_bps = decision.rate.map_or(12_000_000, |rate| rate.as_bps().min(12_000_000));
                decisions.push((step, decision));
                log.decision(&decision, now);
            });
        }
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(replay(&text, None, &mut |_| {}).unwrap(), [decisions.len(); 3]);
        // It goes on at once at a rate that it knew.
        let rate_at = |until| {
            let last = decisions.iter().rev().find(|(step, _)| *step <= until);
            last.and_then(|(_, decision)| decision.rate).map_or(0, weir_core::Rate::as_bps)
        };
        assert_eq!(decisions[0].1.rate, None, "nothing is known at the first start");
        let known = rate_at(599);
        assert!((8_000_000..11_000_000).contains(&known), "{known}");
        let again = rate_at(1000);
        assert!(again.abs_diff(known) * 10 < known, "{again} {known}");
        // One of an earlier version began anew each time, and says so with another word.
        let former = text.replace("\"suspended\":", "\"open\":");
        let [logged, made, same] = replay(&former, None, &mut |_| {}).unwrap();
        assert!(logged == decisions.len() && same < made, "{logged} {made} {same}");
    }

    #[test]
    fn a_replay_decides_what_was_decided_and_another_controller_something_else() {
        let egress_bps = Some(7_000_000);
        let control = Control::Auto(AutoSettings { egress_bps, ..AutoSettings::default() });
        let settings = settings(control);
        let mut file = std::env::temp_dir();
        file.push(format!("weir-shape-log-test-{}", std::process::id()));
        let mut log = Log::create(&file, &settings).unwrap();
        // A line of 10 Mbit/s on which 12 arrive: delays rise by 0.2 s a second.
        let mut controller = control.build();
        let mut decisions = 0;
        for step in 0..500u64 {
            let now = Time::from_millis(20 * step);
            let queue = Duration::from_millis(10 + 4 * step);
            let sent = now.saturating_sub(queue);
            controller.on_sent(0, now);
            log.sent(0, now);
            let delay = Delay { source: 0, sent, rtt: queue, one_way: None, by: Measured::Answer };
            controller.on_delay(&delay, now);
            log.delay(&delay, now);
            if step % 50 == 0 {
                let since = now.saturating_sub(Duration::from_millis(5));
                controller.on_late(since, now);
                log.late(since, now);
            }
            let bytes = 30_000 * step;
            let traffic = [Some(Traffic { bytes, packets: bytes / 1500, backlog_bytes: 0 }); 2];
            log.tick(&traffic, now);
            controller.on_tick(&traffic, now, &mut |decision| {
                decisions += 1;
                log.decision(&decision, now);
            });
        }
        drop(log);
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(decisions > 5, "{decisions}");
        assert_eq!(replay(&text, None, &mut |_| {}).unwrap(), [decisions; 3]);
        // Of a log with the former names of both sides all decisions are the same too.
        let former = text.replace(r#""side":"up""#, r#""side":"egress""#);
        let former = former.replace(r#""side":"down""#, r#""side":"ingress""#);
        assert!(former.contains("gress\",\"rate"), "{former}");
        assert_eq!(replay(&former, None, &mut |_| {}).unwrap(), [decisions; 3]);
        // Ended while it wrote.
        let cut = &text[..text.len() - 5];
        assert!(replay(cut, None, &mut |_| {}).is_ok());
        let mut shown = Vec::new();
        let mut show = |line: &str| shown.push(line.to_owned());
        let [logged, made, same] = replay(&text, Some(Mode::Bandwidth), &mut show).unwrap();
        assert_eq!((logged, made), (decisions, shown.len()));
        assert!(0 < made && same < made, "{made} {same}");
        // What else the log's controller was told stays.
        let kept = r#""side":"up","rate_bps":7000000"#;
        assert!(shown.iter().all(|line| line.contains(kept) || line.contains("down")), "{shown:?}");
        // Times that go back, a counter that does, and a rate that no shaper has.
        let (head, rest) = text.split_once('\n').unwrap();
        let backwards: Vec<_> = std::iter::once(head).chain(rest.lines().rev()).collect();
        let highest = text.replace("\"tick\":[[30000,", "\"tick\":[[18446744073709551615,");
        // One side is left alone for a moment, or shaped for one.
        let pause = |from: &str, to: &str| {
            let whole = rest.lines().map(|line| match line.contains("\"tick\"") {
                true => line.replacen(from, to, 1),
                false => line.to_owned(),
            });
            let lines: Vec<_> = std::iter::once(head.to_owned()).chain(whole).collect();
            lines.join("\n")
        };
        let goes = pause("[[30000,20,0],", "[null,");
        let comes = pause("[[0,0,0],", "[null,");
        let slow = text.replace("\"egress_bps\":7000000", "\"egress_bps\":7");
        for (refused, words) in [
            (backwards.join("\n"), "is before that of the line before it"),
            (highest, "its counters 60000 bytes"),
            (goes, "`up` has no counters at this tick and had some before"),
            (comes, "`up` has counters at this tick and had none before"),
            (slow, "line 1 is not of a shaper's log: up rate 7 bit/s"),
            ("{}".to_owned(), "line 1 is not of a shaper's log: "),
        ] {
            let error = replay(&refused, None, &mut |_| {}).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
