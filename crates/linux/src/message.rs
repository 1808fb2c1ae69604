//! Messages to every part of the kernel that speaks netlink(7): netlink's header, that of the part, and
//! attributes (include/uapi/linux/netlink.h, rtnetlink.h).

/// A message, as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// Subject of a message: `struct tcmsg`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct About {
    /// The device's index.
    pub index: u32,
    /// The discipline's handle or the class' number.
    pub handle: u32,
    /// Handle of the parent.
    pub parent: u32,
}

impl Message {
    /// A message of that type about a discipline or class, without attributes yet.
    pub fn new(kind: u16, flags: u16, about: About) -> Self {
        Self::about_filter(kind, flags, about, 0)
    }

    /// A message of that type about a filter; `info` is its preference and its protocol.
    pub fn about_filter(kind: u16, flags: u16, about: About, info: u32) -> Self {
        // The family, AF_UNSPEC, and padding come first.
        let numbers = [0, about.index, about.handle, about.parent, info];
        Self::with_header(kind, flags, &numbers.map(u32::to_ne_bytes).concat())
    }

    /// A message of that type about the device of that index, or one that its name tells; it gets the flags
    /// `set` (`IFF_UP`, …), and keeps all others.
    pub fn about_link(kind: u16, flags: u16, index: u32, set: u32) -> Self {
        // `struct ifinfomsg`: the family, AF_UNSPEC, padding and the kind of device come first.
        let numbers = [0, index, set, set];
        Self::with_header(kind, flags, &numbers.map(u32::to_ne_bytes).concat())
    }

    /// A message of that type, with `header` behind netlink's own, without attributes yet.
    pub fn with_header(kind: u16, flags: u16, header: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        bytes.extend(1u32.to_ne_bytes());
        bytes.extend(0u32.to_ne_bytes());
        bytes.extend(header);
        Self { bytes }
    }

    /// Adds an attribute.
    pub fn put(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |message| message.bytes.extend(value));
    }

    /// Adds an attribute that is a text, with the zero byte that ends it.
    pub fn put_text(&mut self, kind: u16, value: &str) {
        self.nest(kind, |message| {
            message.append(value.as_bytes());
            message.append(&[0]);
        });
    }

    /// Adds an attribute that is a number.
    pub fn put_u32(&mut self, kind: u16, value: u32) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Adds an attribute that is a long number.
    pub fn put_u64(&mut self, kind: u16, value: u64) {
        self.put(kind, &value.to_ne_bytes());
    }

    /// Adds an attribute that holds what `fill` adds.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let start = self.bytes.len();
        self.bytes.extend([0; 2]);
        self.bytes.extend(kind.to_ne_bytes());
        fill(self);
        let len = (self.bytes.len() - start) as u16;
        self.bytes[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Adds bytes that are no attribute, such as the header in front of nested ones.
    pub fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// The message as it is sent.
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&len.to_ne_bytes());
        self.bytes
    }
}

/// Subject and attributes of an answer without its netlink header.
pub(crate) fn read(body: &[u8]) -> Option<(About, &[u8])> {
    let number = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let about = About { index: number(4)?, handle: number(8)?, parent: number(12)? };
    Some((about, body.get(TCMSG..)?))
}

/// The attributes in `bytes`: their types and values.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind & NLA_TYPE_MASK, value))
    })
}

/// Length of `struct ifinfomsg`.
pub(crate) const IFINFOMSG: usize = 16;
// include/uapi/linux/netlink.h
const NLM_F_REQUEST: u16 = 0x1;
/// The kernel answers, also that it is done.
pub(crate) const NLM_F_ACK: u16 = 0x4;
/// Flag of a request for all entries, not one (`NLM_F_ROOT | NLM_F_MATCH`).
pub(crate) const NLM_F_DUMP: u16 = 0x300;
/// Flag of a request that replaces the entry that is there.
pub(crate) const NLM_F_REPLACE: u16 = 0x100;
const NLM_F_EXCL: u16 = 0x200;
pub(crate) const NLM_F_CREATE: u16 = 0x400;
pub(crate) const NLM_F_APPEND: u16 = 0x800;
/// Flags of a request that makes a new entry, fails if it is there, and is answered.
pub(crate) const CREATE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
/// Flags of a request that makes an entry, in the place of one that is there, and is answered.
pub(crate) const CREATE_OR_REPLACE: u16 = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
/// Length of `struct tcmsg`.
const TCMSG: usize = 20;
/// Flag of the type of an attribute that holds others (`NLA_F_NESTED`); what reads strictly wants it.
pub(crate) const NESTED: u16 = 0x8000;
/// Two bits of a type say other things (include/uapi/linux/netlink.h).
const NLA_TYPE_MASK: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let about = About { index: 7, handle: 0x1_0000, parent: u32::MAX };
        let mut message = Message::new(36, 0, about);
        message.put(1, b"htb\0");
        message.nest(2, |options| {
            options.put(5, &[1, 2, 3]);
            options.put_u64(6, 9);
        });
        let bytes = message.finish();
        assert_eq!(u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len());
        let (read_about, rest) = read(&bytes[16..]).unwrap();
        assert_eq!(read_about, about);
        let outer: Vec<_> = attributes(rest).collect();
        assert_eq!(outer[0], (1, &b"htb\0"[..]));
        let inner: Vec<_> = attributes(outer[1].1).collect();
        assert_eq!(inner, [(5, &[1, 2, 3][..]), (6, &9u64.to_ne_bytes()[..])]);
    }
}
