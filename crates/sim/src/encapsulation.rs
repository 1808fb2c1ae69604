//! Encapsulation: the headers that the path sees, a packet's own or those of its tunnel.
//!
//! ECN passes through a tunnel both ways as RFC 6040 has it: the header outside begins as the one inside, and a
//! mark that it gets outside is copied to the inside at the end. Nobody sends packets that are marked already, and
//! queues mark only what speaks ECN, so that the field of the packet under way is always both, and none is kept.

use weir_core::{Dscp, ETHERNET_HEADER, FlowKey, FlowLabel, Protocol};
use weir_scenario::{IpVersion, Scenario, TunnelKind};

/// Encapsulation of a flow, probe or connection: labels, code point and sizes on the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encapsulation {
    /// Flow labels of the packets from the client, and from the server.
    pub labels: [FlowLabel; 2],
    pub dscp: Dscp,
    pub sizes: PacketSizes,
}

/// Sizes of the packets of a flow, probe or connection, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSizes {
    /// Bytes of the IP header of what fits in.
    pub ip_header: u32,
    /// The largest IP packet that fits in.
    pub mtu: u32,
    tunnel: Option<Outside>,
}

/// Outer packet of a tunnel.
#[derive(Clone, Copy, Debug)]
struct Outside {
    kind: TunnelKind,
    /// The largest IP packet.
    mtu: u32,
    ip_version: IpVersion,
    /// Whether the hashes of flows inside are known where it begins.
    shows_hashes: bool,
}

impl Encapsulation {
    /// For packets of the client's `key`, that go through `tunnel` if it is one. `hash_key` is that of
    /// [`FlowKey::label`].
    pub fn new(
        scenario: &Scenario,
        key: FlowKey,
        dscp: u8,
        tunnel: Option<u32>,
        hash_key: u64,
    ) -> Self {
        let dscp = Dscp::new(dscp).expect("the scenario was checked");
        let Some(number) = tunnel else {
            return Self {
                labels: labels(key, hash_key),
                dscp,
                sizes: PacketSizes {
                    ip_header: ip_version_of(&key).header_bytes(),
                    mtu: scenario.mtu_bytes,
                    tunnel: None,
                },
            };
        };
        let spec = &scenario.tunnels[number as usize];
        let outside = Self {
            labels: labels(scenario.tunnel_key(number), hash_key),
            dscp: spec.kind.outer_dscp(dscp),
            sizes: PacketSizes {
                ip_header: scenario.ip_version.header_bytes(),
                mtu: spec.kind.inner_mtu(scenario.mtu_bytes, scenario.ip_version),
                tunnel: Some(Outside {
                    kind: spec.kind,
                    mtu: scenario.mtu_bytes,
                    ip_version: scenario.ip_version,
                    shows_hashes: spec.on_first_hop,
                }),
            },
        };
        outside.of_other(key, hash_key)
    }

    /// Encapsulation of another flow of the same kind, whose packets of the client have `key`.
    pub fn of_other(&self, key: FlowKey, hash_key: u64) -> Self {
        let inside = labels(key, hash_key);
        let has_ports = matches!(key.protocol, Protocol::TCP | Protocol::UDP);
        let [up, down] = self.labels;
        let labels = match self.sizes.tunnel {
            None => inside,
            Some(Outside { shows_hashes: true, .. }) if has_ports => {
                [FlowLabel { hash: inside[0].hash, ..up }, down]
            }
            Some(_) => self.labels,
        };
        Self { labels, ..*self }
    }
}

impl PacketSizes {
    /// The length, as queues count it, of what carries an IP packet of `ip_len` bytes.
    #[inline]
    pub fn queued_len(&self, ip_len: u32) -> u32 {
        ETHERNET_HEADER
            + match self.tunnel {
                None => ip_len,
                Some(Outside { kind, mtu, ip_version, .. }) => {
                    kind.outer_bytes(ip_len, mtu, ip_version)
                }
            }
    }
}

/// Internet protocol of the packets with `key`.
const fn ip_version_of(key: &FlowKey) -> IpVersion {
    if key.src.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 }
}

/// Flow labels of a connection: of the client's packets, and of the server's.
pub(crate) fn labels(key: FlowKey, hash_key: u64) -> [FlowLabel; 2] {
    [key.label(hash_key), key.reversed().label(hash_key)]
}
