//! TCP-LP (`net/ipv4/tcp_lp.c`).

use crate::line::ack;
use crate::script::{Script, Setup, linux, ms};

/// Round trips that grow by a queue on the way there, of `growth` ms more each, and then a loss.
fn exchange(setup: Setup, growth: u64) -> Script {
    let mut t = setup.connected();
    t.writes_on().skips();
    let mut at = 0;
    for round in 0..10 {
        at += 100 + growth * round;
        let left = at as i64 - 50;
        t.all_arrive(ms(at), |line| line.stamp(left));
    }
    let (first, next) = (t.next() - t.info().in_flight, t.next());
    at += 100 + growth * 10;
    t.at(ms(at)).arrives(ack(first).sack(&[(first + 1, next)])).skips();
    t
}

/// In Linux, whose timestamps have random offsets, a growing one-way delay is no sign to it, but for the first
/// sample: it is Reno.
#[test]
fn it_is_reno_in_linux() {
    for growth in [0, 20] {
        let (lp, reno) = (exchange(linux().algorithm("lp"), growth), exchange(linux(), growth));
        assert_eq!(lp.windows(), reno.windows(), "growth of {growth} ms");
    }
}
