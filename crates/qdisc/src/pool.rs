//! Packets in linked lists that share one pool: many queues, no allocation per packet.

use weir_core::Packet;

/// The nodes of all lists of one discipline.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    nodes: Vec<Node>,
    free: Option<Link>,
}

/// A first-in first-out list of packets of a [`Pool`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    ends: Option<Ends>,
}

type Link = u32;

#[derive(Clone, Copy, Debug)]
struct Ends {
    head: Link,
    tail: Link,
}

#[derive(Debug)]
struct Node {
    packet: Packet,
    next: Option<Link>,
}

impl Pool {
    /// Appends `packet` to `list`.
    pub fn push(&mut self, list: &mut List, packet: Packet) {
        let node = Node { packet, next: None };
        let link = if let Some(link) = self.free {
            self.free = self.nodes[link as usize].next;
            self.nodes[link as usize] = node;
            link
        } else {
            self.nodes.push(node);
            (self.nodes.len() - 1) as Link
        };
        match &mut list.ends {
            None => list.ends = Some(Ends { head: link, tail: link }),
            Some(ends) => {
                self.nodes[ends.tail as usize].next = Some(link);
                ends.tail = link;
            }
        }
    }

    /// Takes the oldest packet of `list`.
    pub fn pop(&mut self, list: &mut List) -> Option<Packet> {
        let ends = list.ends.as_mut()?;
        let link = ends.head;
        let node = &mut self.nodes[link as usize];
        let packet = node.packet;
        match node.next {
            None => list.ends = None,
            Some(next) => ends.head = next,
        }
        node.next = self.free;
        self.free = Some(link);
        Some(packet)
    }
}
