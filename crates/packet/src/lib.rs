//! IP packets as bytes, for the live data path.
//!
//! A packet comes in as bytes that begin with its IP header, perhaps a GSO packet of 64 KB with a
//! virtio header in front. [`parse`] says what it is, [`Headers::packet`] makes the descriptor that
//! queues know, [`Segmenter`] turns a GSO packet into segments that queue one by one, [`set_tos`] writes
//! a queue's mark into the real header, [`Coalescer`] puts segments together again on the way out, and
//! [`time_exceeded`] answers for packets that have come too far.
//!
//! Nothing here copies payload, allocates (but for [`craft`], which is not for live packets), reads a clock or
//! does I/O. Whatever bytes arrive, nothing panics.
//!
//! ```
//! use weir_packet::{Segmenter, Fill, Coalescer, Limits, Virtio, craft, decrement_ttl, parse};
//!
//! // What a TUN device hands over: a virtio header and a GSO packet of 3000 bytes of payload.
//! let (virtio, mut packet) = craft::Tcp::new("10.0.0.1:1000", "10.0.1.1:2000").super_packet(3000, 1448);
//! let headers = parse(&packet)?;
//! assert_eq!(decrement_ttl(&mut packet), Some(63));
//!
//! // One descriptor a segment goes into the queue.
//! let cut = Segmenter::new(&headers, &Virtio::parse(&virtio, packet.len())?)?;
//! let whole = headers.packet(0, 0, 1);
//! let queued: Vec<_> = cut.segments().map(|part| part.packet(&whole, part.index as u64)).collect();
//! assert_eq!(queued.iter().map(|part| part.ip_len()).collect::<Vec<_>>(), [1500, 1500, 156]);
//!
//! // What leaves the queue is written as headers and a slice, joined or alone.
//! let mut join: Option<Coalescer> = None;
//! for part in &queued {
//!     let segment = cut.segment(part.handle as usize).unwrap();
//!     let mut head = [0; 128];
//!     let len = cut.write_headers(&packet, &segment, part.tos(), Fill::Partial, &mut head).unwrap();
//!     match &mut join {
//!         Some(join) => assert!(join.push(&head[..len])),
//!         none => *none = Coalescer::start(&head[..len], Limits::default()),
//!     }
//! }
//! let mut head = [0; Coalescer::MAX_HEADERS];
//! let (len, back) = join.unwrap().finish(&mut head).unwrap();
//! assert_eq!((&head[..len], back.to_bytes()), (&packet[..len], virtio));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bytes;
mod checksum;
mod coalesce;
pub mod craft;
mod edit;
mod headers;
pub mod icmp;
mod ipv4;
mod ipv6;
mod segment;
mod tcp;
mod virtio;

pub use checksum::{Sum, complete_checksum, transport_checksum_ok};
pub use coalesce::{Coalescer, Limits};
pub use edit::{decrement_ttl, set_ecn, set_tos};
pub use headers::{Fragment, Headers, Malformed, Transport, Version, parse, parse_head};
pub use icmp::time_exceeded;
pub use ipv4::checksum_ok as ipv4_checksum_ok;
pub use segment::{Fill, NotSegmentable, Segment, Segmenter};
pub use virtio::{BadVirtio, Checksum, Gso, GsoKind, Virtio};
