//! `police`: says of each packet whether it keeps to a rate. Nothing waits.
//!
//! Follows Linux `net/sched/act_police.c` and `net/core/gen_estimator.c`; iproute2 `tc/m_police.c`. A policer
//! stands where packets come in, so that a packet's length is that of its IP packet; only `mtu` counts the
//! Ethernet header too.

use weir_core::{Duration, Packet, Rate, Time, units};

use crate::Device;
use crate::linux::{RateTable, burst_time};
use crate::tbf::Lengths;
use crate::tc::{
    self, Plain, Record, SpecError, Text, Unless0, depth, nonzero_depth, params, rate, words,
};

/// A policer.
pub(crate) struct Police {
    /// Longer packets, Ethernet header included, exceed.
    mtu: u64,
    rate: Option<Bucket>,
    peak: Option<Bucket>,
    checked_at: Time,
    /// Most bytes per second on average.
    average: Option<(u64, Estimator)>,
    exceed: Control,
    conform: Control,
}

/// A policer's decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    /// It passes.
    Ok,
    /// It passes unless a further action of the same filter says otherwise.
    Pipe,
    /// It is dropped.
    Drop,
    /// The next filter is asked.
    Continue,
}

/// Tokens in nanoseconds of sending, at most `depth` of them.
struct Bucket {
    table: RateTable,
    depth: i64,
    tokens: i64,
}

impl Bucket {
    fn after(&self, len: u32, elapsed: i64) -> i64 {
        (self.tokens + elapsed).min(self.depth) - self.table.time_of(len)
    }
}

impl Police {
    /// A policer as `words` say, with the `estimator` that the filter names.
    pub fn read(words: &[String], estimator: &[&str], device: &Device) -> Result<Self, SpecError> {
        let words = with_control_named(words);
        let options: PoliceOptions = tc::read("police", &words, device)?;
        let PoliceOptions { rate, burst, mtu: Unless0(mtu), avrate: average, lengths, .. } =
            options;
        let wrong = |what: &str| SpecError::new(format!("police: {what}"));
        if rate.is_none() && average.is_none() {
            return Err(wrong("one of `rate` and `avrate` is required"));
        }
        let bucket = match (rate, burst) {
            (None, _) => None,
            (Some(_), None) => return Err(wrong("`rate` needs `burst`")),
            (Some(rate), Some(burst)) => {
                let depth = burst_time(burst, rate);
                Some(Bucket { table: lengths.table(rate), depth, tokens: depth })
            }
        };
        let peak = match (options.peakrate, mtu) {
            (None, _) => None,
            (Some(_), _) if rate.is_none() => return Err(wrong("`peakrate` needs `rate`")),
            (Some(_), None) => return Err(wrong("`peakrate` needs `mtu`")),
            (Some(peak), Some(mtu)) => {
                let table = lengths.table(peak);
                let depth = table.time_of(u32::try_from(mtu).unwrap_or(u32::MAX));
                Some(Bucket { table, depth, tokens: depth })
            }
        };
        let average = match average {
            None => None,
            Some(average) if !estimator.is_empty() => {
                Some((average.as_bytes_per_sec(), Estimator::read(estimator)?))
            }
            Some(_) => return Err(wrong("`avrate` needs `estimator INTERVAL AVERAGE` before it")),
        };
        let Controls { exceed, conform } = options.controls;
        // Without `mtu`, or with 0, the kernel takes what its table of 256 steps of 8 bytes reaches.
        let mtu = mtu.unwrap_or(if rate.is_some() { 255 << 3 } else { u64::from(u32::MAX) });
        Ok(Self { mtu, rate: bucket, peak, checked_at: Time::ZERO, average, exceed, conform })
    }

    /// The policer's decision on `packet`, which arrives at `now`.
    pub fn judge(&mut self, packet: &Packet, now: Time) -> Control {
        if let Some((most, estimator)) = &mut self.average
            && estimator.rate(packet.ip_len(), now) >= *most
        {
            return self.exceed;
        }
        if u64::from(packet.len) > self.mtu {
            return self.exceed;
        }
        let Some(rate) = &mut self.rate else { return self.conform };
        let elapsed = i64::try_from(now.since(self.checked_at).as_nanos()).unwrap_or(i64::MAX);
        let elapsed = elapsed.min(rate.depth);
        let tokens = rate.after(packet.ip_len(), elapsed);
        let peak_tokens = self.peak.as_ref().map_or(0, |peak| peak.after(packet.ip_len(), elapsed));
        if tokens < 0 || peak_tokens < 0 {
            return self.exceed;
        }
        self.checked_at = now;
        rate.tokens = tokens;
        if let Some(peak) = &mut self.peak {
            peak.tokens = peak_tokens;
        }
        self.conform
    }
}

/// The words with `conform-exceed` before a control that stands alone, as in the old syntax.
fn with_control_named(words: &[String]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for word in words {
        let stands_alone = named.last().is_none_or(|last| last != "conform-exceed");
        if stands_alone && Control::named(word).is_some() {
            named.push("conform-exceed".to_owned());
        }
        named.push(word.clone());
    }
    named
}

/// The value of `conform-exceed`: what becomes of packets that exceed, and of others.
struct Controls {
    exceed: Control,
    conform: Control,
}

impl Plain for Controls {}

fn read_controls(text: &Text<'_>) -> Result<Controls, SpecError> {
    let (exceed, conform) = text.text.split_once('/').unwrap_or((text.text, "ok"));
    let allowed = "write EXCEED or EXCEED/CONFORM of drop, ok, pipe, continue, reclassify";
    let named = |word| Control::named(word).ok_or_else(|| text.bad(allowed));
    if conform == "reclassify" {
        return Err(text.bad("a packet that conforms cannot be asked for again without end"));
    }
    Ok(Controls { exceed: named(exceed)?, conform: named(conform)? })
}

impl Control {
    fn named(word: &str) -> Option<Self> {
        Some(match word {
            "ok" | "pass" => Self::Ok,
            "pipe" => Self::Pipe,
            // Asked again at the same instant a packet exceeds again; after 16 times Linux drops it.
            "drop" | "shot" | "reclassify" => Self::Drop,
            "continue" => Self::Continue,
            _ => return None,
        })
    }
}

/// A rate as `gen_estimator` has it: a moving average over intervals of 2^n quarters of a second.
struct Estimator {
    interval: Duration,
    interval_log: u32,
    weight_log: u32,
    /// Average in units of 1/256 byte per second.
    average: u64,
    bytes: u64,
    /// Until when the average knows, and how many bytes there had been by then.
    counted_until: Time,
    counted_bytes: u64,
}

impl Estimator {
    fn read(words: &[&str]) -> Result<Self, SpecError> {
        let bad = || {
            SpecError::new(format!(
                "`estimator {}`: write an interval up to 8s and a longer time to average over, such \
                 as `estimator 1s 8s`",
                words.join(" ")
            ))
        };
        let [interval, over] = words else { return Err(bad()) };
        let interval = units::parse_time(interval).map_err(|_| bad())?;
        let over = units::parse_time(over).map_err(|_| bad())?.as_secs_f64();
        let interval_log =
            (0..=5).find(|log| interval.as_nanos() <= QUARTER.as_nanos() << log).ok_or_else(bad)?;
        // The largest weight 2^-n whose average forgets within that time (`tc_setup_estimator`).
        let seconds = interval.as_secs_f64();
        let weight_log = (1..32)
            .find(|log| seconds / -libm::log(1.0 - 1.0 / f64::from(1u32 << log)) > over)
            .map(|log| log - 1)
            .filter(|&log| log > 0)
            .ok_or_else(bad)?;
        Ok(Self {
            interval: Duration::from_nanos(QUARTER.as_nanos() << interval_log),
            interval_log,
            weight_log,
            average: 0,
            bytes: 0,
            counted_until: Time::ZERO,
            counted_bytes: 0,
        })
    }

    /// Bytes per second as known at `now`, when a packet of `len` bytes comes.
    fn rate(&mut self, len: u32, now: Time) -> u64 {
        while self.counted_until + self.interval <= now {
            self.counted_until += self.interval;
            let rate = (self.bytes - self.counted_bytes) << (10 - self.interval_log);
            self.counted_bytes = self.bytes;
            let sum = self.average + (rate >> self.weight_log);
            self.average = sum - (self.average >> self.weight_log);
            if rate == 0 && self.average >> self.weight_log == 0 {
                // Nothing changes until a packet comes: skip the silence.
                let silent = now.since(self.counted_until).as_nanos() / self.interval.as_nanos();
                self.counted_until += self.interval * silent;
            }
        }
        self.bytes += u64::from(len);
        self.average >> 8
    }
}

/// How many of `words` belong to a policer.
pub(crate) fn police_words(words: &[&str]) -> usize {
    let mut count = 0;
    while let Some((word, behind)) = words[count..].split_first() {
        count += match PoliceOptions::PARAMS.iter().find(|param| param.answers_to(word)) {
            Some(param) => 1 + param.kind.take(behind).unwrap_or(0),
            None if Control::named(word).is_some() => 1,
            None => break,
        };
    }
    count
}

params! {
    /// Parameters of a policer.
    struct PoliceOptions {
        /// rate that packets may have
        rate: Option<Rate> = rate().absent("any"),
        /// bytes that may come at once
        burst: Option<u64> = nonzero_depth()
            .aliases(&["buffer", "maxburst"])
            .absent("required with rate"),
        /// longest packet that may pass, Ethernet header included; depth of the bucket of peakrate
        mtu: Unless0<u64> = depth().aliases(&["minburst"]).absent_or_0("2040"),
        /// rate of a second bucket of depth `mtu`
        peakrate: Option<Rate> = rate().absent("any"),
        /// average rate that packets may have, as `estimator` sees it
        avrate: Option<Rate> = rate().absent("any"),
        /// what becomes of packets that exceed, and of others: drop, ok, pipe, continue, reclassify
        controls as "conform-exceed": Controls = words("EXCEED[/CONFORM]", |_| 1, read_controls)
            .default("reclassify/ok"),
        lengths: Lengths,
    }
}

const QUARTER: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use weir_core::{Dscp, Ecn, FlowLabel};

    use super::*;

    fn police(text: &str, estimator: &[&str]) -> Result<Police, SpecError> {
        let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        Police::read(&words, estimator, &Device::default())
    }

    fn packet(ip_len: u32) -> Packet {
        Packet {
            handle: 0,
            enqueued_at: Time::ZERO,
            label: FlowLabel::default(),
            len: ip_len + 14,
            flow_id: 0,
            dscp: Dscp::BE,
            ecn: Ecn::NotEct,
        }
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        let mut police = police("rate 8mbit burst 3000 drop", &[]).unwrap();
        let ms = Time::from_millis;
        let judged: Vec<_> = [0, 0, 0, 1, 2, 3, 4]
            .map(|at| police.judge(&packet(1_500), ms(at)) == Control::Ok)
            .to_vec();
        // A megabyte a second: 1500 bytes take 1.5 ms.
        assert_eq!(judged, [true, true, false, false, true, true, false]);
    }

    #[test]
    fn a_peak_rate_spreads_the_burst() {
        let mut police =
            police("rate 8mbit burst 30000 peakrate 16mbit mtu 1600 drop", &[]).unwrap();
        let mut at = |micros: u64| {
            police.judge(&packet(1_500), Time::from_nanos(micros * 1_000)) == Control::Ok
        };
        // The peak's bucket holds 1600 bytes; 1500 take 750 us.
        assert_eq!(
            [at(0), at(600), at(700), at(1_449), at(1_450)],
            [true, false, true, false, true]
        );
    }

    #[test]
    fn longer_packets_than_the_mtu_exceed() {
        let mut police =
            police("rate 8mbit burst 30000 mtu 1000 conform-exceed continue", &[]).unwrap();
        assert_eq!(police.judge(&packet(986), Time::ZERO), Control::Ok);
        assert_eq!(police.judge(&packet(987), Time::ZERO), Control::Continue);
    }

    /// 1000 bytes every 10 ms are 800 kbit/s; the average comes near it within the time constant.
    #[test]
    fn an_average_rate_is_known_after_a_while() {
        let mut police = police("avrate 400kbit drop", &["250ms", "1s"]).unwrap();
        let judged: Vec<_> = (0..300)
            .map(|n| police.judge(&packet(1_000), Time::from_millis(10 * n)) == Control::Ok)
            .collect();
        let first = judged.iter().position(|&passes| !passes).unwrap();
        // The average after n intervals is 100 kB/s (1 - (3/4)^n), and 50 kB/s after the third.
        assert_eq!(first, 75);
        assert!(judged[first..].iter().all(|&passes| !passes));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let error = |text: &str| police(text, &[]).map(|_| ()).unwrap_err().to_string();
        assert_eq!(error("rate 1mbit"), "police: `rate` needs `burst`");
        assert_eq!(error("mtu 2k"), "police: one of `rate` and `avrate` is required");
        assert_eq!(error("rate 1mbit burst 5k peakrate 2mbit"), "police: `peakrate` needs `mtu`");
        assert_eq!(
            error("avrate 1mbit"),
            "police: `avrate` needs `estimator INTERVAL AVERAGE` before it"
        );
        assert_eq!(
            error("rate 1mbit burst 5k conform-exceed stop"),
            "police: `conform-exceed stop`: write EXCEED or EXCEED/CONFORM of drop, ok, pipe, \
             continue, reclassify"
        );
    }
}
