//! Options of `pie`, `fq_pie` and `fq` as the kernel takes them.

use weir_qdisc::{FqOptions, FqPieOptions, PieOptions, Signals, Steering};

use super::rtnetlink::{TCA_OPTIONS, microseconds, short};
use crate::message::{Message, NESTED};

/// Adds the options of a `pie` to the message that makes it.
pub(super) fn put_pie(message: &mut Message, options: &PieOptions) {
    let PieOptions { limit, steering, signals } = options;
    let attributes = [TARGET, TUPDATE, ALPHA, BETA, ECN, BYTEMODE, DQ_RATE_ESTIMATOR];
    message.nest(TCA_OPTIONS, |of| {
        of.put_u32(TCA_PIE_LIMIT, *limit);
        for (attribute, value) in attributes.into_iter().zip(controller(steering, signals)) {
            of.put_u32(attribute, value);
        }
    });
}

/// Adds the options of an `fq_pie` to the message that makes it.
pub(super) fn put_fq_pie(message: &mut Message, options: &FqPieOptions) {
    let FqPieOptions { limit, flows, steering, quantum, memory_limit, ecn_prob, signals } = options;
    let attributes = [
        TCA_FQ_PIE_TARGET,
        TCA_FQ_PIE_TUPDATE,
        TCA_FQ_PIE_ALPHA,
        TCA_FQ_PIE_BETA,
        TCA_FQ_PIE_ECN,
        TCA_FQ_PIE_BYTEMODE,
        TCA_FQ_PIE_DQ_RATE_ESTIMATOR,
    ];
    // Of all disciplines here this one reads strictly.
    message.nest(TCA_OPTIONS | NESTED, |of| {
        of.put_u32(TCA_FQ_PIE_LIMIT, *limit);
        of.put_u32(TCA_FQ_PIE_FLOWS, short(*flows as u64));
        of.put_u32(TCA_FQ_PIE_QUANTUM, *quantum);
        of.put_u32(TCA_FQ_PIE_MEMORY_LIMIT, short(*memory_limit));
        of.put_u32(TCA_FQ_PIE_ECN_PROB, (*ecn_prob).into());
        for (attribute, value) in attributes.into_iter().zip(controller(steering, signals)) {
            of.put_u32(attribute, value);
        }
    });
}

/// PIE's controller: target and update in microseconds, alpha, beta, and what it does to packets.
fn controller(steering: &Steering, signals: &Signals) -> [u32; 7] {
    let Steering { target, tupdate, alpha, beta } = *steering;
    let Signals { ecn, bytemode, dq_rate_estimator } = *signals;
    [
        microseconds(target),
        microseconds(tupdate),
        short(alpha),
        short(beta),
        ecn.into(),
        bytemode.into(),
        dq_rate_estimator.into(),
    ]
}

/// Adds the options of an `fq` to the message that makes it.
pub(super) fn put_fq(message: &mut Message, options: &FqOptions) {
    message.nest(TCA_OPTIONS, |of| {
        of.put_u32(TCA_FQ_BUCKETS_LOG, options.buckets.next_power_of_two().ilog2());
        of.put_u32(TCA_FQ_PLIMIT, options.limit);
        of.put_u32(TCA_FQ_FLOW_PLIMIT, options.flow_limit);
        // What newer kernels make of more; older ones refuse it.
        of.put_u32(TCA_FQ_QUANTUM, short(options.quantum.min(FQ_QUANTUM_MAX)));
        of.put_u32(TCA_FQ_INITIAL_QUANTUM, options.initial_quantum);
        of.put_u32(TCA_FQ_RATE_ENABLE, options.pacing.into());
        if let Some(rate) = options.maxrate {
            of.put_u32(TCA_FQ_FLOW_MAX_RATE, short(rate.as_bytes_per_sec()));
        }
        let low_rate = short(options.low_rate_threshold.as_bytes_per_sec());
        of.put_u32(TCA_FQ_LOW_RATE_THRESHOLD, low_rate);
        of.put_u32(TCA_FQ_FLOW_REFILL_DELAY, microseconds(options.refill_delay));
        of.put_u32(TCA_FQ_ORPHAN_MASK, options.orphan_mask);
        if let Some(threshold) = options.ce_threshold {
            of.put_u32(TCA_FQ_CE_THRESHOLD, microseconds(threshold));
        }
        of.put_u32(TCA_FQ_TIMER_SLACK, short(options.timer_slack.as_nanos()));
        of.put_u32(TCA_FQ_HORIZON, microseconds(options.horizon));
        of.put(TCA_FQ_HORIZON_DROP, &[options.horizon_drop.into()]);
    });
}

/// `fq_change`.
const FQ_QUANTUM_MAX: u64 = 1 << 20;
// include/uapi/linux/pkt_sched.h, the first seven of `pie`'s without its prefix
const TARGET: u16 = 1;
const TCA_PIE_LIMIT: u16 = 2;
const TUPDATE: u16 = 3;
const ALPHA: u16 = 4;
const BETA: u16 = 5;
const ECN: u16 = 6;
const BYTEMODE: u16 = 7;
const DQ_RATE_ESTIMATOR: u16 = 8;
const TCA_FQ_PIE_LIMIT: u16 = 1;
const TCA_FQ_PIE_FLOWS: u16 = 2;
const TCA_FQ_PIE_TARGET: u16 = 3;
const TCA_FQ_PIE_TUPDATE: u16 = 4;
const TCA_FQ_PIE_ALPHA: u16 = 5;
const TCA_FQ_PIE_BETA: u16 = 6;
const TCA_FQ_PIE_QUANTUM: u16 = 7;
const TCA_FQ_PIE_MEMORY_LIMIT: u16 = 8;
const TCA_FQ_PIE_ECN_PROB: u16 = 9;
const TCA_FQ_PIE_ECN: u16 = 10;
const TCA_FQ_PIE_BYTEMODE: u16 = 11;
const TCA_FQ_PIE_DQ_RATE_ESTIMATOR: u16 = 12;
const TCA_FQ_PLIMIT: u16 = 1;
const TCA_FQ_FLOW_PLIMIT: u16 = 2;
const TCA_FQ_QUANTUM: u16 = 3;
const TCA_FQ_INITIAL_QUANTUM: u16 = 4;
const TCA_FQ_RATE_ENABLE: u16 = 5;
const TCA_FQ_FLOW_MAX_RATE: u16 = 7;
const TCA_FQ_BUCKETS_LOG: u16 = 8;
const TCA_FQ_FLOW_REFILL_DELAY: u16 = 9;
const TCA_FQ_ORPHAN_MASK: u16 = 10;
const TCA_FQ_LOW_RATE_THRESHOLD: u16 = 11;
const TCA_FQ_CE_THRESHOLD: u16 = 12;
const TCA_FQ_TIMER_SLACK: u16 = 13;
const TCA_FQ_HORIZON: u16 = 14;
const TCA_FQ_HORIZON_DROP: u16 = 15;

#[cfg(test)]
mod tests {
    use weir_qdisc::{Device, QueueSpec};

    use super::super::options::told_numbers;
    use super::*;
    use crate::message::{About, read};

    // What iproute2 6.1 sends, as strace shows it.
    #[test]
    fn what_tc_tells_of_pie_and_fq_pie() {
        let words = "ecn bytemode dq_rate_estimator";
        let pie = format!("pie limit 50 target 2ms tupdate 4ms alpha 32 beta 3 {words}");
        assert_eq!(
            told_numbers(&pie),
            [(1, 2_000), (2, 50), (3, 4_000), (4, 32), (5, 3), (6, 1), (7, 1), (8, 1)]
        );
        let fq_pie = format!(
            "fq_pie limit 40 flows 4 target 1ms tupdate 4ms alpha 1 beta 2 quantum 300 \
             memory_limit 1000000 ecn_prob 90 {words}"
        );
        let controller = [(3, 1_000), (4, 4_000), (5, 1), (6, 2)];
        let rest = [(7, 300), (8, 1_000_000), (9, 90), (10, 1), (11, 1), (12, 1)];
        assert_eq!(told_numbers(&fq_pie)[..2], [(1, 40), (2, 4)]);
        assert_eq!(told_numbers(&fq_pie)[2..6], controller);
        assert_eq!(told_numbers(&fq_pie)[6..], rest);
    }

    #[test]
    fn a_quantum_is_told_as_newer_kernels_keep_it() {
        assert!(told_numbers("fq quantum 4294967295").contains(&(3, 1 << 20)));
    }

    #[test]
    fn fq_pie_reads_its_options_only_if_they_say_that_they_are_nested() {
        let mut message = Message::new(0, 0, About { index: 0, handle: 0, parent: 0 });
        let spec = QueueSpec::parse("fq_pie").unwrap();
        put_fq_pie(&mut message, &spec.read(&Device::default()).unwrap());
        let bytes = message.finish();
        let (_, options) = read(&bytes[16..]).unwrap();
        assert_eq!(options[2..4], (TCA_OPTIONS | NESTED).to_ne_bytes());
    }

    #[test]
    fn what_tc_tells_of_fq() {
        let text = "fq limit 40 flow_limit 4 quantum 3000 initial_quantum 9000 maxrate 1mbit buckets 1000 \
                    refill_delay 20ms orphan_mask 7 low_rate_threshold 1mbit ce_threshold 2ms \
                    timer_slack 20us horizon 5s horizon_cap nopacing";
        assert_eq!(
            told_numbers(text),
            [
                (1, 40),
                (2, 4),
                (3, 3_000),
                (4, 9_000),
                (5, 0),
                (7, 125_000),
                (8, 10),
                (9, 20_000),
                (10, 7),
                (11, 125_000),
                (12, 2_000),
                (13, 20_000),
                (14, 5_000_000),
                (15, 0),
            ]
        );
    }
}
