//! Lines, loads and events that nobody tuned for, drawn by number: on hardly any of them may a load be strangled or a queue stay.

use std::sync::atomic::{AtomicU64, Ordering};

use weir_core::{Draw, Rng, Seed};
use weir_rate_control::{Mode, Side};

use crate::line::{Line, jitter};

/// Numbers of the lines.
const LINES: u64 = 400;
/// Lines at most, of a hundred, on which a loaded side carries less than a half 12 s behind the last event, or a queue stays.
const WRONG_IN_HUNDRED: u64 = 4;

#[test]
fn hardly_any_random_line_is_strangled_or_left_full() {
    let next = AtomicU64::new(0);
    let draw = || {
        let mut wrong = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= LINES {
                return wrong;
            }
            wrong.extend(Trial::drawn(number).wrong());
        }
    };
    let wrong = std::thread::scope(|scope| {
        let both = [scope.spawn(draw), scope.spawn(draw)];
        both.map(|one| one.join().expect("a line panicked")).concat()
    });
    let most = LINES * WRONG_IN_HUNDRED / 100;
    assert!(wrong.len() as u64 <= most, "{} of {LINES}:\n{}", wrong.len(), wrong.join("\n"));
}

/// One line with a load and what happens to it.
struct Trial {
    random: Rng,
    line: Line,
    /// What it is, in words.
    words: String,
    /// Sides that are loaded.
    sides: Vec<Side>,
    /// Round trips and capacities before the first event.
    base_ms: Vec<f64>,
    capacity: [f64; 2],
}

impl Trial {
    /// The line of this number, idle for some seconds, then loaded for fifteen.
    fn drawn(number: u64) -> Self {
        let mut random = Seed::new(number).stream("line");
        let mode = [Mode::Ping, Mode::Bandwidth][random.below(2) as usize];
        let up = between(&mut random, 0.5, 300.0);
        let down = up * between(&mut random, 1.0, 20.0);
        let mut line = Line::new(mode, [up, down]);
        let base = between(&mut random, 3.0, 200.0);
        line.base_ms = vec![base, base * 1.1 + 1.0, base * 1.3 + 2.0];
        line.limit = (up * 1e6 / 8.0 * between(&mut random, 0.05, 1.5)).clamp(8e3, 3e6);
        line.one_way = random.unit() < 0.25;
        line.loses_probes = random.unit() < 0.5;
        let jitter_ms = between(&mut random, 0.5, 12.0);
        let jitter_ms = if random.unit() < 0.4 { jitter_ms } else { 0.0 };
        line.foreign_ms = jitter(jitter_ms);
        let sides = match random.below(4) {
            0 => vec![Side::Egress],
            1 => vec![Side::Ingress],
            _ => Side::ALL.to_vec(),
        };
        let words = format!(
            "{number}: {mode:?} {sides:?} of {up:.1}/{down:.1} Mbit/s, {base:.0} ms, jitter {jitter_ms:.1}"
        );
        let (base_ms, capacity) = (line.base_ms.clone(), line.capacity);
        let mut trial = Self { random, line, words, sides, base_ms, capacity };
        trial.line.run(2_000);
        trial.begin_load();
        trial.run(15_000);
        trial
    }

    fn begin_load(&mut self) {
        for side in Side::ALL {
            let (own, other) = (side as usize, 1 - side as usize);
            self.line.demand[own] = match self.sides.contains(&side) {
                true => 3.0 * self.line.capacity[own],
                // Acknowledgements.
                false => (self.line.capacity[other] / 20.0).min(self.line.capacity[own] / 2.0),
            };
        }
    }

    /// Lets `ms` pass with loads that heed losses, as TCP's do.
    fn run(&mut self, ms: u64) {
        const STEP_MS: u64 = 20;
        for _ in 0..ms / STEP_MS {
            self.line.run(STEP_MS);
            for &side in &self.sides {
                let capacity = self.line.capacity[side as usize];
                let round_trip = self.line.base_ms[0] + self.line.queue_ms(side).min(5_000.0);
                let part = STEP_MS as f64 / round_trip.max(STEP_MS as f64);
                let held = self.line.rate(side).map_or(f64::INFINITY, |mbit| mbit * 1.5e6);
                let is_full = self.line.queue_ms(side) * capacity / 8e3 >= self.line.limit * 0.98;
                let demand = &mut self.line.demand[side as usize];
                *demand = match is_full {
                    true => (demand.min(held) * (1.0 - 0.3 * part)).max(20e3),
                    false => *demand + capacity * part * (0.05 + 5.0 / round_trip),
                };
                *demand = demand.min(3.0 * capacity);
            }
        }
    }

    /// Something happens to the line.
    fn event(&mut self) {
        let side = self.sides[self.random.below(self.sides.len() as u64) as usize] as usize;
        let Self { random, line, words, .. } = self;
        match random.below(9) {
            0 | 1 => {
                let longer_ms = between(random, 3.0, 700.0);
                line.lengthen(longer_ms);
                *words += &format!("; {longer_ms:.0} ms longer");
            }
            2 => {
                let slower = between(random, 1.3, 50.0);
                line.capacity[side] = (line.capacity[side] / slower).max(0.3e6);
                *words += &format!("; side {side} {:.2} Mbit/s", line.capacity[side] / 1e6);
            }
            3 => {
                line.capacity[side] *= between(random, 1.3, 10.0);
                *words += &format!("; side {side} {:.2} Mbit/s", line.capacity[side] / 1e6);
            }
            4 => {
                let out_ms = between(random, 30.0, 8_000.0) as u64;
                line.pause_ms = line.now_ms..line.now_ms + out_ms;
                *words += &format!("; out for {out_ms} ms");
            }
            5 => self.pause(),
            6 => {
                let most_ms = between(random, 0.5, 15.0);
                line.foreign_ms = jitter(most_ms);
                *words += &format!("; jitter {most_ms:.1} ms");
            }
            7 => {
                line.capacity = self.capacity;
                *words += "; capacities as before";
            }
            _ => {
                line.base_ms.clone_from(&self.base_ms);
                *words += "; path as before";
            }
        }
    }

    /// The load pauses, and meanwhile the path may become longer.
    fn pause(&mut self) {
        let demand = std::mem::take(&mut self.line.demand);
        let pause_ms = between(&mut self.random, 300.0, 20_000.0) as u64;
        let longer_ms = between(&mut self.random, 3.0, 300.0);
        let longer_ms = if self.random.unit() < 0.5 { longer_ms } else { 0.0 };
        self.line.run(pause_ms / 2);
        self.line.lengthen(longer_ms);
        self.line.run(pause_ms / 2);
        self.line.demand = demand;
        self.words += &format!("; no load for {pause_ms} ms, {longer_ms:.0} ms longer");
    }

    /// What went wrong behind one to three events, if anything did.
    fn wrong(mut self) -> Option<String> {
        for _ in 0..=self.random.below(3) {
            self.event();
            let lasts_ms = between(&mut self.random, 300.0, 12_000.0) as u64;
            self.run(lasts_ms);
            self.words += &format!(", {lasts_ms} ms");
        }
        self.run(self.line.pause_ms.end.saturating_sub(self.line.now_ms) + 12_000);
        let before = Side::ALL.map(|side| self.line.crossed_line(side));
        let mut queue_ms = [0.0; 2];
        for _ in 0..500 {
            self.run(20);
            for side in Side::ALL {
                queue_ms[side as usize] += self.line.queue_ms(side) / 500.0;
            }
        }
        let mut wrong = String::new();
        for &side in &self.sides {
            let (place, capacity) = (side as usize, self.line.capacity[side as usize]);
            let used = (self.line.crossed_line(side) - before[place]) * 0.8 / capacity;
            let full_ms = self.line.limit * 8e3 / capacity;
            if used < 0.5 || queue_ms[place] > (full_ms / 2.0).clamp(30.0, 100.0) {
                wrong += &format!("{side:?} {used:.2} used, {:.0} ms; ", queue_ms[place]);
            }
        }
        (!wrong.is_empty()).then(|| format!("{wrong}{}", self.words))
    }
}

/// A number between `least` and `most`, the logarithm of which is evenly spread.
fn between(random: &mut Rng, least: f64, most: f64) -> f64 {
    (least.ln() + random.unit() * (most / least).ln()).exp()
}
