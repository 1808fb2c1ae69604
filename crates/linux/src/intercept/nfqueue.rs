//! NFQUEUE: packets out of the kernel, verdicts into it (include/uapi/linux/netfilter/nfnetlink_queue.h).

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, setsockopt, socket,
    sockopt,
};
use weir_core::error_in_words;

use crate::LinuxError;
use crate::message::{Message, NLM_F_ACK, attributes};

/// Queues of this process, on one socket.
#[derive(Debug)]
pub(super) struct Queues {
    socket: OwnedFd,
    inbox: Inbox,
    /// Verdicts that the kernel was not told yet.
    verdicts: Vec<u8>,
    verdict_head: [u8; VERDICT_HEAD],
    /// The number of the first queue, and by queue the last packet that came, if one did.
    first: u16,
    last: Vec<Option<u32>>,
    missed: u64,
}

/// A packet that waits for its verdict.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting<'a> {
    pub queue: u16,
    pub id: u32,
    /// When the kernel took it in, on `CLOCK_REALTIME`: on the way in, if it notes such times.
    pub real_ns: Option<u64>,
    pub gso: bool,
    /// Bytes of the whole packet, of which `bytes` are the first.
    pub len: usize,
    pub bytes: &'a [u8],
}

/// What a queue hands over of each packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Copied {
    /// All of it, so that it can be written.
    Whole,
    /// Its first [`HEAD`] bytes.
    Head,
}

/// Messages from the kernel, several a call.
#[derive(Debug)]
struct Inbox {
    bytes: Vec<u8>,
    /// Lengths of the messages that were received last, and how many of them were looked at.
    lens: [usize; MESSAGES],
    received: usize,
    looked_at: usize,
}

/// Verdict on a packet that waits in NFQUEUE.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueueVerdict {
    Drop,
    Accept,
    /// The packet goes to another queue, as if it came.
    Queue(u16),
}

impl QueueVerdict {
    /// The number that the kernel has for it (include/uapi/linux/netfilter.h).
    const fn code(self) -> u32 {
        match self {
            Self::Drop => NF_DROP,
            Self::Accept => NF_ACCEPT,
            Self::Queue(to) => NF_QUEUE | (to as u32) << 16,
        }
    }
}

impl Queues {
    /// The first successive queues of this network namespace that nobody has, one for `each`, of
    /// `most` packets each, beyond which packets pass.
    pub fn open(each: &[Copied], most: u32) -> Result<(Self, u16), LinuxError> {
        let count = each.len() as u16;
        let mut queues = Self {
            socket: socket_of_queues()?,
            inbox: Inbox::new(),
            verdicts: Vec::new(),
            verdict_head: verdict_head(),
            first: 0,
            last: vec![None; count.into()],
            missed: 0,
        };
        let mut refused = None;
        for first in (FIRST_QUEUE..FIRST_QUEUE + TRIES * count).step_by(count.into()) {
            let mut all = (first..).zip(each);
            match all.try_for_each(|(queue, &copied)| queues.bind(queue, copied, most)) {
                Ok(()) => {
                    queues.first = first;
                    return Ok((queues, first));
                }
                Err(error) => refused = Some(error),
            }
            // With the socket go those that were to be had: nobody would read what others send there.
            queues.socket = socket_of_queues()?;
        }
        let error = refused.expect("something was tried");
        Err(LinuxError::new(match error.raw_os_error() {
            Some(libc::EPERM) => {
                "this user may not hold packets back: run as root, or with the capability \
                                  CAP_NET_ADMIN"
                    .to_owned()
            }
            Some(libc::EINVAL | libc::EOPNOTSUPP) => {
                "this kernel cannot hand packets to a program: it has no NFQUEUE".to_owned()
            }
            _ => {
                format!(
                    "no queue between kernel and program can be had ({})",
                    error_in_words(&error)
                )
            }
        }))
    }

    fn bind(&self, queue: u16, copied: Copied, most: u32) -> io::Result<()> {
        let config = |kind: u16, value: &[u8]| {
            let mut message = message(NFQNL_MSG_CONFIG, NLM_F_ACK, queue);
            message.put(kind, value);
            message
        };
        let range: u32 = match copied {
            Copied::Whole => WHOLE,
            Copied::Head => HEAD as u32,
        };
        let range = [&range.to_be_bytes()[..], &[NFQNL_COPY_PACKET]].concat();
        for message in [
            config(NFQA_CFG_CMD, &[NFQNL_CFG_CMD_BIND, 0, 0, 0]),
            config(NFQA_CFG_PARAMS, &range),
            config(NFQA_CFG_QUEUE_MAXLEN, &most.to_be_bytes()),
            flag(NLM_F_ACK, queue, NFQA_CFG_F_FAIL_OPEN, true),
        ] {
            let fd = self.socket.as_raw_fd();
            send(fd, &message.finish(), MsgFlags::empty())?;
            let mut answer = [0; 1024];
            let len = recv(fd, &mut answer, MsgFlags::empty())?;
            for (_, body) in crate::netlink::answers(&answer[..len]) {
                match crate::netlink::error_of(body) {
                    Some(0) | None => {}
                    Some(code) => return Err(io::Error::from_raw_os_error(-code)),
                }
            }
        }
        Ok(())
    }

    /// From now on GSO packets come to `queue` as they are, or the kernel cuts them first.
    pub fn keep_gso(&self, queue: u16, keep: bool) -> io::Result<()> {
        let message = flag(0, queue, NFQA_CFG_F_GSO, keep);
        send(self.socket.as_raw_fd(), &message.finish(), MsgFlags::empty())?;
        Ok(())
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next packet, without waiting.
    pub fn receive(&mut self) -> io::Result<Option<Waiting<'_>>> {
        let (found, message) = loop {
            let Some(message) = self.inbox.next(&self.socket)? else { return Ok(None) };
            // Anything else is a word about a verdict that came too late.
            if let Some(found) = read(&self.inbox.bytes[message.clone()]) {
                break (found, message);
            }
        };
        let Found { queue, id, real_ns, gso, len, payload } = found;
        let last = &mut self.last[usize::from(queue - self.first)];
        self.missed += last.map_or(0, |last| u64::from(id.wrapping_sub(last).saturating_sub(1)));
        *last = Some(id);
        let bytes = &self.inbox.bytes[message][payload];
        Ok(Some(Waiting { queue, id, real_ns, gso, len, bytes }))
    }

    /// Notes what becomes of a packet.
    pub fn judge(&mut self, packet: (u16, u32), verdict: QueueVerdict, bytes: Option<&[u8]>) {
        write_verdict(&mut self.verdicts, self.verdict_head, packet, verdict, bytes);
        if self.verdicts.len() >= FLUSH {
            // The next flush says what is wrong.
            let _ = self.flush();
        }
    }

    pub fn flush(&mut self) -> io::Result<()> {
        if !self.verdicts.is_empty() {
            let sent = send(self.socket.as_raw_fd(), &self.verdicts, MsgFlags::empty());
            self.verdicts.clear();
            sent?;
        }
        Ok(())
    }

    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

fn socket_of_queues() -> Result<OwnedFd, LinuxError> {
    let (flags, protocol) = (SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkNetFilter);
    let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, protocol)
        .map_err(|error| LinuxError::io("no socket of nfnetlink", error))?;
    // Only the host's root may have more than the system's limit, which is enough for slow lines.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
    }
    Ok(socket)
}

impl Inbox {
    fn new() -> Self {
        let bytes = vec![0; MESSAGES * MAX_MESSAGE_BYTES];
        Self { bytes, lens: [0; MESSAGES], received: 0, looked_at: 0 }
    }

    /// Where the next message is; `None` if there is none.
    fn next(&mut self, socket: &OwnedFd) -> io::Result<Option<Range<usize>>> {
        if self.looked_at == self.received {
            (self.received, self.looked_at) = (self.receive(socket)?, 0);
        }
        if self.received == 0 {
            return Ok(None);
        }
        let start = self.looked_at * MAX_MESSAGE_BYTES;
        self.looked_at += 1;
        Ok(Some(start..start + self.lens[self.looked_at - 1]))
    }

    /// Takes what has come, without waiting: how many messages.
    fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        let mut parts =
            [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: MAX_MESSAGE_BYTES }; MESSAGES];
        // SAFETY: headers of zeros are valid ones.
        #[allow(unsafe_code, reason = "plain numbers and null pointers")]
        let mut headers: [libc::mmsghdr; MESSAGES] = unsafe { std::mem::zeroed() };
        let places = self.bytes.chunks_exact_mut(MAX_MESSAGE_BYTES).zip(&mut parts);
        for ((place, part), header) in places.zip(&mut headers) {
            part.iov_base = place.as_mut_ptr().cast();
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        loop {
            // SAFETY: every pointer in the headers outlives the call, and the lengths are those of what they
            // point to; no time limit is given.
            #[allow(unsafe_code, reason = "nix' call borrows what it fills for too long")]
            let count = unsafe {
                let most = MESSAGES as libc::c_uint;
                // A signed number of glibc, an unsigned one of musl.
                let flags = libc::MSG_DONTWAIT as _;
                let fd = socket.as_raw_fd();
                libc::recvmmsg(fd, headers.as_mut_ptr(), most, flags, std::ptr::null_mut())
            };
            if count >= 0 {
                for (len, header) in self.lens.iter_mut().zip(&headers) {
                    *len = header.msg_len as usize;
                }
                return Ok(count as usize);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EAGAIN) => return Ok(0),
                // Some were not read in time, and passed.
                Some(libc::ENOBUFS | libc::EINTR) => {}
                _ => return Err(error),
            }
        }
    }
}

/// A packet in a message.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    queue: u16,
    id: u32,
    real_ns: Option<u64>,
    gso: bool,
    /// Bytes of the packet.
    len: usize,
    /// Where in the message its first bytes are.
    payload: Range<usize>,
}

/// The packet in what the kernel has sent.
fn read(bytes: &[u8]) -> Option<Found> {
    let (message, body) = crate::netlink::answers(bytes).next()?;
    if message != SUBSYS_QUEUE << 8 | NFQNL_MSG_PACKET {
        return None;
    }
    let queue = u16::from_be_bytes(body.get(2..4)?.try_into().ok()?);
    let (mut id, mut real_ns, mut payload) = (None, None, None);
    let (mut gso, mut len) = (false, None);
    for (kind, value) in attributes(body.get(NFGENMSG..)?) {
        match kind {
            NFQA_PACKET_HDR => id = Some(be32(value)?),
            NFQA_TIMESTAMP => {
                let number = |at: usize| Some(u64::from_be_bytes(*value.get(at..)?.first_chunk()?));
                real_ns = Some(number(0)? * 1_000_000_000 + number(8)? * 1_000);
            }
            NFQA_SKB_INFO => gso = be32(value)? & NFQA_SKB_GSO != 0,
            NFQA_CAP_LEN => len = Some(be32(value)? as usize),
            NFQA_PAYLOAD => {
                let start = value.as_ptr() as usize - bytes.as_ptr() as usize;
                payload = Some(start..start + value.len());
            }
            _ => {}
        }
    }
    let payload = payload?;
    // The length is told where not all of it was copied.
    let len = len.unwrap_or(payload.len());
    Some(Found { queue, id: id?, real_ns, gso, len, payload })
}

fn be32(value: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(*value.first_chunk()?))
}

/// Adds what becomes of a packet, [as a message](message), without making one first.
fn write_verdict(
    out: &mut Vec<u8>,
    head: [u8; VERDICT_HEAD],
    (queue, id): (u16, u32),
    verdict: QueueVerdict,
    bytes: Option<&[u8]>,
) {
    let start = out.len();
    out.extend(head);
    let [high, low] = queue.to_be_bytes();
    out[start + QUEUE_AT] = high;
    out[start + QUEUE_AT + 1] = low;
    out.extend(verdict.code().to_be_bytes());
    out.extend(id.to_be_bytes());
    if let Some(bytes) = bytes {
        out.extend(((ATTRIBUTE + bytes.len()) as u16).to_ne_bytes());
        out.extend(NFQA_PAYLOAD.to_ne_bytes());
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_ne_bytes());
}

/// A verdict up to what it says of the packet: netlink's header, nfnetlink's, and that of the attribute.
fn verdict_head() -> [u8; VERDICT_HEAD] {
    let mut told = message(NFQNL_MSG_VERDICT, 0, 0);
    told.put(NFQA_VERDICT_HDR, &[0; 8]);
    *told.finish().first_chunk().expect("it is as long as that")
}

/// The message that sets or clears a flag of `queue`.
fn flag(flags: u16, queue: u16, flag: u32, set: bool) -> Message {
    let mut message = message(NFQNL_MSG_CONFIG, flags, queue);
    message.put(NFQA_CFG_MASK, &flag.to_be_bytes());
    message.put(NFQA_CFG_FLAGS, &(if set { flag } else { 0 }).to_be_bytes());
    message
}

fn message(kind: u16, flags: u16, queue: u16) -> Message {
    let queue = queue.to_be_bytes();
    Message::with_header(SUBSYS_QUEUE << 8 | kind, flags, &[0, 0, queue[0], queue[1]])
}

/// Where free queues are looked for: far from the numbers that people write.
const FIRST_QUEUE: u16 = 0x7765;
const TRIES: u16 = 16;
/// The longest packet, and what comes with it.
const MAX_MESSAGE_BYTES: usize = 1 << 17;
/// Messages a call: what it costs is then small beside what they cost.
const MESSAGES: usize = 32;
/// netlink's header (16), nfnetlink's (4), and that of an attribute.
const VERDICT_HEAD: usize = 16 + NFGENMSG + ATTRIBUTE;
/// Where nfnetlink's header has the queue's number.
const QUEUE_AT: usize = 18;
/// Header of an attribute.
const ATTRIBUTE: usize = 4;
/// Bytes of verdicts that the kernel is told at once.
const FLUSH: usize = 1 << 15;
/// 2000 packets, 20 ms of a line of 1 Gbit/s.
const RECEIVE_BUFFER: usize = 1 << 22;
// include/uapi/linux/netfilter/nfnetlink.h, nfnetlink_queue.h
const NFGENMSG: usize = 4;
const SUBSYS_QUEUE: u16 = 3;
const NFQNL_MSG_PACKET: u16 = 0;
const NFQNL_MSG_VERDICT: u16 = 1;
const NFQNL_MSG_CONFIG: u16 = 2;
const NFQA_PACKET_HDR: u16 = 1;
const NFQA_VERDICT_HDR: u16 = 2;
/// `struct nfqnl_msg_packet_timestamp`: seconds and microseconds.
const NFQA_TIMESTAMP: u16 = 4;
const NFQA_PAYLOAD: u16 = 10;
const NFQA_CAP_LEN: u16 = 13;
const NFQA_SKB_INFO: u16 = 14;
const NFQA_SKB_GSO: u32 = 1 << 1;
const NFQA_CFG_CMD: u16 = 1;
const NFQA_CFG_PARAMS: u16 = 2;
const NFQA_CFG_QUEUE_MAXLEN: u16 = 3;
const NFQA_CFG_MASK: u16 = 4;
const NFQA_CFG_FLAGS: u16 = 5;
const NFQA_CFG_F_FAIL_OPEN: u32 = 1;
const NFQA_CFG_F_GSO: u32 = 1 << 2;
const NFQNL_CFG_CMD_BIND: u8 = 1;
const NFQNL_COPY_PACKET: u8 = 2;
// include/uapi/linux/netfilter.h
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
const NF_QUEUE: u32 = 3;
/// A packet that is written into is copied whole, as the kernel takes it back whole.
const WHOLE: u32 = 0xffff;
/// Bytes of a packet of which no more than the headers is wanted: those of IPv6 (40) and TCP with options (60),
/// and as much again for what stands between.
const HEAD: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_queue_is_kept_of_those_among_which_another_has_one() {
        // Only root makes one, and finds out.
        let Ok(namespace) = crate::Namespace::new() else { return };
        let work = || {
            let (mut other, _) = Queues::open(&[Copied::Whole], 10)?;
            other.socket = socket_of_queues()?;
            other.bind(FIRST_QUEUE + 3, Copied::Whole, 10).unwrap();
            let (_ours, first) = Queues::open(&[Copied::Head; 4], 10)?;
            let path = "/proc/thread-self/net/netfilter/nfnetlink_queue";
            let told = std::fs::read_to_string(path).unwrap();
            let number = |line: &str| line.split_whitespace().next()?.parse().ok();
            let mut all: Vec<u16> = told.lines().filter_map(number).collect();
            all.sort_unstable();
            Ok((first - FIRST_QUEUE, all.iter().map(|it| it - FIRST_QUEUE).collect::<Vec<_>>()))
        };
        assert_eq!(namespace.within(work).unwrap(), (4, vec![3, 4, 5, 6, 7]));
    }

    #[test]
    fn a_packet_is_found_in_what_the_kernel_sends() {
        let mut sent = message(NFQNL_MSG_PACKET, 0, 0x7766);
        sent.put(NFQA_PACKET_HDR, &[0, 0, 1, 2, 8, 0, 4]);
        sent.put(9, &[1, 2, 3]);
        sent.put(NFQA_TIMESTAMP, &[0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3]);
        sent.put(NFQA_PAYLOAD, &[0x45, 0, 0, 20, 7]);
        let bytes = sent.finish();
        let found = read(&bytes).unwrap();
        assert_eq!((found.queue, found.id, found.real_ns), (0x7766, 258, Some(2_000_003_000)));
        assert_eq!((found.gso, found.len), (false, 5));
        assert_eq!(bytes[found.payload], [0x45, 0, 0, 20, 7]);
        assert!(read(&bytes[..30]).is_none());
        let verdict = message(NFQNL_MSG_VERDICT, 0, 1).finish();
        assert!(read(&verdict).is_none());
    }

    #[test]
    fn of_a_gso_packet_the_first_bytes_come_and_its_length_is_told() {
        let mut sent = message(NFQNL_MSG_PACKET, 0, 0x7766);
        sent.put(NFQA_PACKET_HDR, &[0, 0, 1, 2, 8, 0, 4]);
        sent.put(NFQA_CAP_LEN, &[0, 0, 0xfe, 0x98]);
        // Its checksum is not ready either.
        sent.put(NFQA_SKB_INFO, &[0, 0, 0, 3]);
        sent.put(NFQA_PAYLOAD, &[0x45, 0, 0xfe, 0x98]);
        let bytes = sent.finish();
        let found = read(&bytes).unwrap();
        assert_eq!((found.gso, found.len), (true, 0xfe98));
        assert_eq!(bytes[found.payload], [0x45, 0, 0xfe, 0x98]);
    }

    #[test]
    fn verdicts_are_the_messages_that_the_kernel_takes() {
        let mut written = Vec::new();
        let payload = [0x45, 0, 0, 20, 7];
        write_verdict(&mut written, verdict_head(), (0x7766, 258), QueueVerdict::Drop, None);
        write_verdict(
            &mut written,
            verdict_head(),
            (0x7767, 3),
            QueueVerdict::Accept,
            Some(&payload),
        );
        let mut first = message(NFQNL_MSG_VERDICT, 0, 0x7766);
        first.put(NFQA_VERDICT_HDR, &[0, 0, 0, 0, 0, 0, 1, 2]);
        let mut second = message(NFQNL_MSG_VERDICT, 0, 0x7767);
        second.put(NFQA_VERDICT_HDR, &[0, 0, 0, 1, 0, 0, 0, 3]);
        second.put(NFQA_PAYLOAD, &payload);
        assert_eq!(written, [first.finish(), second.finish()].concat());
        assert_eq!(QueueVerdict::Queue(0x7768).code(), 0x7768_0003);
    }
}
