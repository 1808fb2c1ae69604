//! Packets in linked lists that share one pool: many queues, no allocation per packet.

use weir_core::{Packet, prefetch};

/// The nodes of all lists of one discipline.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    nodes: Vec<Node>,
    free: Option<Link>,
}

/// A first-in first-out list of packets of a [`Pool`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    ends: Option<HeadAndTail>,
}

/// A packet's place in its list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    previous: Option<Link>,
    at: Link,
}

type Link = u32;

#[derive(Clone, Copy, Debug)]
struct HeadAndTail {
    head: Link,
    tail: Link,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    packet: Packet,
    next: Option<Link>,
}

impl List {
    /// Whether nothing waits.
    pub const fn is_empty(&self) -> bool {
        self.ends.is_none()
    }

    /// Whether exactly one packet waits.
    pub fn is_single(&self) -> bool {
        self.ends.is_some_and(|ends| ends.head == ends.tail)
    }

    /// Whether the last packet is at that place.
    pub fn ends_at(&self, place: &Cursor) -> bool {
        self.ends.is_some_and(|ends| ends.tail == place.at)
    }
}

impl Pool {
    /// Appends `packet` to `list`.
    #[inline(always)]
    pub fn push(&mut self, list: &mut List, packet: &Packet) {
        let link = if let Some(link) = self.free {
            let node = &mut self.nodes[link as usize];
            self.free = node.next.take();
            node.packet = *packet;
            link
        } else {
            self.nodes.push(Node { packet: *packet, next: None });
            (self.nodes.len() - 1) as Link
        };
        match &mut list.ends {
            None => list.ends = Some(HeadAndTail { head: link, tail: link }),
            Some(ends) => {
                self.nodes[ends.tail as usize].next = Some(link);
                ends.tail = link;
            }
        }
    }

    /// The oldest packet of `list` will be taken shortly.
    pub fn prefetch_first(&self, list: &List) {
        if let Some(ends) = &list.ends {
            prefetch(&self.nodes[ends.head as usize]);
        }
    }

    /// Takes the oldest packet of `list`.
    #[inline(always)]
    pub fn pop(&mut self, list: &mut List) -> Option<Packet> {
        let ends = list.ends.as_mut()?;
        let link = ends.head;
        let node = &mut self.nodes[link as usize];
        match node.next {
            None => list.ends = None,
            Some(next) => ends.head = next,
        }
        node.next = self.free;
        self.free = Some(link);
        Some(node.packet)
    }

    /// The packets of `list` with their places, the oldest first.
    pub fn iter(&self, list: &List) -> impl Iterator<Item = (Cursor, &Packet)> {
        let mut next = list.ends.map(|ends| Cursor { previous: None, at: ends.head });
        std::iter::from_fn(move || {
            let place = next?;
            let node = &self.nodes[place.at as usize];
            next = node.next.map(|at| Cursor { previous: Some(place.at), at });
            Some((place, &node.packet))
        })
    }

    /// Takes the packet at `place` out of `list`, to which it must belong.
    pub fn remove(&mut self, list: &mut List, place: Cursor) -> Packet {
        let Cursor { previous, at } = place;
        let Node { packet, next } = self.nodes[at as usize];
        if let Some(previous) = previous {
            self.nodes[previous as usize].next = next;
        }
        let ends = list.ends.expect("a packet is in it");
        list.ends = match (previous, next) {
            (None, None) => None,
            (None, Some(head)) => Some(HeadAndTail { head, ..ends }),
            (Some(tail), None) => Some(HeadAndTail { tail, ..ends }),
            (Some(_), Some(_)) => Some(ends),
        };
        self.nodes[at as usize].next = self.free;
        self.free = Some(at);
        packet
    }
}
