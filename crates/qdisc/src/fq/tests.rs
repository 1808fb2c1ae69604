use weir_core::{Dscp, Ecn, FlowLabel};

use super::*;
use crate::Ignore;
use crate::contract::Qdisc;

fn queue(spec: &str) -> Box<dyn Qdisc> {
    QueueSpec::parse(spec).unwrap().build(&Device::default()).unwrap()
}

fn packet(hash: u32, tos: u8, now: Time) -> Packet {
    Packet {
        handle: 0,
        enqueued_at: now,
        label: FlowLabel { hash, ..FlowLabel::default() },
        len: 1514,
        flow_id: hash,
        dscp: Dscp::from_tos(tos),
        ecn: Ecn::from_tos(tos),
    }
}

#[test]
fn bands_share_by_their_weights() {
    let mut queue = queue("fq flow_limit 10000");
    // Best effort, bulk, low delay: bands 1, 2 and 0.
    for n in 0..9_000 {
        let (hash, tos) = [(1, 0x00), (2, 0x08), (3, 0x10)][n % 3];
        queue.enqueue(&packet(hash, tos, Time::ZERO), Time::ZERO, &mut Ignore);
    }
    let mut sent = [0; 4];
    for _ in 0..3_000 {
        sent[queue.dequeue(Time::ZERO, &mut Ignore).unwrap().flow_id as usize] += 1;
    }
    // Eight packets by the fast path (3, 3, 2), the first ten of each flow in band 0, and then in five
    // rounds 130 of best effort and 43.4 of bulk each; low delay has the rest, 390 in a round.
    assert_eq!(sent, [0, 3 + 10 + 650, 3 + 10 + 217, 2_107]);
}

#[test]
fn a_slow_flow_waits_after_each_packet_and_a_fast_one_after_its_credit() {
    let leave_at = |spec: &str| {
        let mut queue = queue(spec);
        for _ in 0..4 {
            queue.enqueue(&packet(1, 0, Time::ZERO), Time::ZERO, &mut Ignore);
        }
        let mut now = Time::ZERO;
        let mut left = Vec::new();
        while queue.backlog().packets > 0 {
            while queue.dequeue(now, &mut Ignore).is_some() {
                left.push(now.as_nanos() / 1_000);
            }
            now = queue.wake_at().unwrap_or(now);
        }
        left
    };
    // 1514 bytes at 500 kbit/s take 24 224 us.
    let slow = leave_at("fq maxrate 500kbit timer_slack 0");
    assert_eq!(slow, [0, 24_224, 48_448, 72_672]);
    // At 1 Mbit/s two packets, the quantum, go together, after a first credit of two.
    let fast = leave_at("fq maxrate 1mbit quantum 3028 initial_quantum 3028 timer_slack 0");
    assert_eq!(fast, [0, 0, 24_224, 24_224]);
}

#[test]
fn what_waits_for_its_rate_is_marked_by_how_late_it_is() {
    let mut queue = queue("fq maxrate 500kbit ce_threshold 2ms");
    let ms = Time::from_millis;
    queue.enqueue(&packet(1, 2, ms(0)), ms(0), &mut Ignore);
    queue.enqueue(&packet(1, 2, ms(0)), ms(0), &mut Ignore);
    assert_eq!(queue.dequeue(ms(0), &mut Ignore).unwrap().ecn, Ecn::Ect0);
    assert!(queue.dequeue(ms(1), &mut Ignore).is_none());
    // It might have left at 24.2 ms.
    assert_eq!(queue.dequeue(ms(27), &mut Ignore).unwrap().ecn, Ecn::Ce);
    assert_eq!(queue.stats().total_marked(), 1);
}

/// The flows that leave at `now`, in order.
fn order(queue: &mut dyn Qdisc, now: Time) -> String {
    std::iter::from_fn(|| queue.dequeue(now, &mut Ignore))
        .map(|it| it.flow_id.to_string())
        .collect()
}

/// A flow of which nothing waits is set aside; 12 jiffies of 4 ms later it has rested for longer than `refill_delay`,
/// 10 jiffies, and may send a quantum, two packets, at once. Before, it goes on with what it had left: one packet.
/// Flow 1 then has one packet left in its turn, and from there on both send two a turn.
#[test]
fn a_flow_that_rested_has_a_whole_quantum_again() {
    for (back, turns) in [(48_000_000 - 1, "21221121"), (48_000_000, "22122111")] {
        let mut queue = queue("fq initial_quantum 3000 refill_delay 40ms");
        let now = Time::ZERO;
        // Flow 1 waits all the time, so that nothing passes by; eight packets did before.
        for flow in [[9; 8].as_slice(), &[1; 13]].concat() {
            queue.enqueue(&packet(flow, 0, now), now, &mut Ignore);
        }
        for _ in 0..10 {
            queue.dequeue(now, &mut Ignore);
        }
        // Flow 2 sends one packet of its 3000 bytes, and is set aside by the time flow 1 has sent again.
        queue.enqueue(&packet(2, 0, now), now, &mut Ignore);
        let left = (0..8).map(|_| queue.dequeue(now, &mut Ignore).unwrap().flow_id);
        assert_eq!(left.collect::<Vec<_>>(), [2, 1, 1, 1, 1, 1, 1, 1]);
        let later = Time::from_nanos(back);
        for _ in 0..4 {
            queue.enqueue(&packet(2, 0, later), later, &mut Ignore);
        }
        assert_eq!(order(&mut *queue, later), turns, "{back}");
    }
}

/// Eight packets pass by while nothing else can leave; the ninth takes a turn, and with it its flow's credit of one
/// packet. Once all have left, eight may pass again.
#[test]
fn eight_packets_pass_by_the_turns() {
    let mut queue = queue("fq initial_quantum 1514 quantum 1514");
    for (flow, other, turns) in [(1, 2, "11111111121"), (3, 4, "33333333343")] {
        for hash in [[flow; 10].as_slice(), &[other]].concat() {
            queue.enqueue(&packet(hash, 0, Time::ZERO), Time::ZERO, &mut Ignore);
        }
        assert_eq!(order(&mut *queue, Time::ZERO), turns);
    }
}

/// The packets that pass by are not the band's, and those that left are not any more.
#[test]
fn a_band_holds_as_many_packets_as_its_limit() {
    let mut queue = queue("fq limit 2");
    for round in 1..=3 {
        for _ in 0..11 {
            queue.enqueue(&packet(1, 0, Time::ZERO), Time::ZERO, &mut Ignore);
        }
        let dropped = queue.stats().dropped[DropReason::Overlimit as usize].packets;
        assert_eq!((queue.backlog().packets, dropped), (10, round));
        assert_eq!(order(&mut *queue, Time::ZERO), "1111111111");
    }
}

/// 1514 bytes at 500 kbit/s take 24 224 us. A packet that left late is made up for by the next one's wait, up to half
/// of that.
#[test]
fn a_late_packet_shortens_the_next_wait_by_half_at_most() {
    let us = |micros: u64| Time::from_nanos(1_000 * micros);
    for (late, wait) in [(0, 24_224), (5_000, 19_224), (12_112, 12_112), (15_000, 12_112)] {
        let mut queue = queue("fq maxrate 500kbit timer_slack 0");
        for _ in 0..3 {
            queue.enqueue(&packet(1, 0, us(0)), us(0), &mut Ignore);
        }
        assert!(queue.dequeue(us(0), &mut Ignore).is_some());
        let second = 24_224 + late;
        assert!(queue.dequeue(us(second), &mut Ignore).is_some());
        assert!(queue.dequeue(us(second), &mut Ignore).is_none());
        assert_eq!(queue.wake_at(), Some(us(second + wait)), "{late}");
    }
}

/// As `tc` reads it: `timer_slack 1000` is shown as `timer_slack 1us`.
#[test]
fn a_timer_slack_without_a_unit_is_in_nanoseconds() {
    let wake = |slack: &str| {
        let mut queue = queue(&format!("fq maxrate 500kbit timer_slack {slack}"));
        for _ in 0..2 {
            queue.enqueue(&packet(1, 0, Time::ZERO), Time::ZERO, &mut Ignore);
        }
        assert!(queue.dequeue(Time::ZERO, &mut Ignore).is_some());
        assert!(queue.dequeue(Time::ZERO, &mut Ignore).is_none());
        queue.wake_at()
    };
    assert_eq!(wake("1000"), wake("1us"));
    assert_ne!(wake("1000"), wake("1ms"));
}
