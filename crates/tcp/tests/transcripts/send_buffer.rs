//! The sender's buffer: Linux `tcp_sendmsg_locked`, `tcp_sndbuf_expand`. RFC 9293 leaves buffers to the
//! implementation.

use weir_tcp::SocketBuffer;

use crate::line::{ack, again, all};
use crate::script::{Setup, linux, ms, us};

/// Memory for so many bytes, and a window that does not bound what is in flight.
fn memory(greatest: u32) -> Setup {
    linux().with(|profile| {
        profile.send_buffer = Some(SocketBuffer { start: 16_384, greatest });
        profile.initial_window = 600;
    })
}

/// A write of 256 KiB goes on as long as what it puts into the buffer leaves at once. The application hears
/// of room when a third of the buffer is free (`sk_stream_is_writeable`): of 60000 bytes, when no more
/// than 21 segments are left, which take 1832 each, and the rest of the write with its 144 bytes.
#[test]
fn the_buffer_bounds_what_is_in_flight() {
    let mut t = memory(60_000).connected();
    t.writes_on().leaves(&all(0..262));
    t.at(ms(100));
    for number in 1..241 {
        t.later(us(100)).arrives(ack(number)).leaves(&[]);
    }
    t.later(us(100)).arrives(ack(241)).leaves(&all(262..524));
    assert_eq!(t.info().in_flight, 283);
}

/// Segments that a selective acknowledgement covers are joined, and take their data's room only.
///
/// (`tcp_shift_skb_data`.) Here there are 38 segments in one piece, and 144 bytes in another.
#[test]
fn what_arrived_behind_a_gap_takes_less_room() {
    let mut t = memory(60_000).connected();
    t.writes_on().leaves(&all(0..262));
    t.at(ms(100)).arrives(ack(0).sack(&[(1, 262)])).leaves(&[again(0)]);
    t.at(ms(200)).arrives(ack(223).sack(&[(224, 262)])).leaves(&[]);
    t.later(us(100)).arrives(ack(224).sack(&[(225, 262)])).leaves(&all(262..524));
}

/// The send buffer grows as long as it is the limit, to two windows of segments that take 2304 bytes each.
///
/// (`tcp_should_expand_sndbuf`.) A write of 20 segments fits into the first 46080 bytes.
#[test]
fn a_buffer_that_limits_grows() {
    let mut t = linux().connected();
    t.writes_on().leaves(&all(0..10));
    t.at(ms(100));
    // Slow start goes on without a pause for want of data.
    for number in 1..=200 {
        let next = 10 + 2 * (number - 1);
        t.later(us(10)).arrives(ack(number)).leaves(&all(next..next + 2));
    }
}

/// Without a buffer of its own all that was written can be sent.
#[test]
fn without_a_buffer_nothing_limits() {
    let mut t = linux().with(|profile| {
        profile.send_buffer = None;
        profile.initial_window = 200;
    });
    t = t.peer_window(1_000_000);
    t.connected().writes_on().leaves(&all(0..200));
}
