//! Tunnels: what a VPN makes of the flows and probes that it carries.
//!
//! To whoever is outside, all of it is one flow, UDP between the tunnel's ends, and every packet is longer. Only
//! where the packets get their outer headers is there more to see: see
//! [`on_first_hop`](Tunnel::on_first_hop).

use serde::{Deserialize, Serialize};
use weir_core::{Dscp, FlowKey, IpVersion, Protocol};

use crate::addresses::client_host_address;
use crate::check::unique;
use crate::scenario::{ProbeKind, Scenario, ScenarioError};

/// A tunnel from the client's network to a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// Name of the tunnel.
    pub name: String,
    /// Protocol of the tunnel.
    pub kind: TunnelKind,
    /// Number of the server at which it ends; what goes through it goes there.
    pub host: u32,
    /// Number of the machine in the client's network at which it ends; 0 is the client itself.
    #[serde(default)]
    pub client_host: u32,
    /// Whether it ends on the machine that has the first queue of the way up, and not on one in front of it.
    /// Linux keeps the hash of the flow inside (`skb->hash`) while a packet stays on that machine, so that
    /// queues by flow tell the TCP and UDP flows inside apart there (`wg_reset_packet`, queueing.h). Of what
    /// has no ports, such as an echo, it is forgotten (`skb_clear_hash_if_not_l4`, net/ipv4/ip_tunnel_core.c)
    /// or, with IPv6 outside, not used by CAKE, which looks for `l4_hash`: that counts as the tunnel's own.
    #[serde(default)]
    pub on_first_hop: bool,
}

/// Protocol of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TunnelKind {
    /// `WireGuard` as in Linux (drivers/net/wireguard): in a UDP datagram 16 bytes of header, the packet
    /// padded with zeros, and 16 bytes of authentication.
    WireGuard,
    /// ESP in tunnel mode (RFC 4303) with AES-GCM and an integrity check value of 16 bytes (RFC 4106), in UDP as
    /// behind a NAT (RFC 3948).
    Ipsec,
}

impl TunnelKind {
    /// The largest IP packet inside, in bytes, where the largest outside is `mtu`. Of WireGuard with room for IPv6
    /// outside whatever is there (`wg_setup`, device.c; `wg-quick` likewise), 1420 of 1500; of IPsec what fits
    /// (`xfrm_state_mtu`, net/xfrm/xfrm_state.c), 1438 of 1500 over IPv4.
    #[must_use]
    pub const fn inner_mtu(self, mtu: u32, outside: IpVersion) -> u32 {
        match self {
            Self::WireGuard => mtu - IpVersion::V6.header_bytes() - UDP_HEADER - MESSAGE,
            Self::Ipsec => {
                let room = mtu - outside.header_bytes() - UDP_HEADER - ESP;
                room - room % ESP_ALIGNMENT - ESP_TRAILER
            }
        }
    }

    /// Bytes of the IP packet outside that carries one of `inner` bytes, where the largest outside is `mtu`.
    /// WireGuard pads up to a multiple of 16, but not beyond the inner MTU (`calculate_skb_padding`, send.c).
    #[must_use]
    pub fn outer_bytes(self, inner: u32, mtu: u32, outside: IpVersion) -> u32 {
        let carried = match self {
            Self::WireGuard => {
                let most = self.inner_mtu(mtu, outside);
                MESSAGE + inner.next_multiple_of(PADDING).min(most).max(inner)
            }
            Self::Ipsec => ESP + (inner + ESP_TRAILER).next_multiple_of(ESP_ALIGNMENT),
        };
        outside.header_bytes() + UDP_HEADER + carried
    }

    /// The code point outside: `WireGuard` tells nothing (`wg_packet_send_staged_packets`, send.c), IPsec copies
    /// what is inside (RFC 4301, section 5.1.2; `xfrm4_tunnel_encap_add`, net/xfrm/xfrm_output.c).
    #[must_use]
    pub const fn outer_dscp(self, inside: Dscp) -> Dscp {
        match self {
            Self::WireGuard => Dscp::BE,
            Self::Ipsec => inside,
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::WireGuard => WIREGUARD_PORT,
            Self::Ipsec => IPSEC_PORT,
        }
    }
}

impl Scenario {
    /// The 5-tuple of what the client's end of tunnel number `tunnel` sends: UDP from and to the usual port, or
    /// one of the next for further tunnels.
    #[must_use]
    pub fn tunnel_key(&self, tunnel: u32) -> FlowKey {
        let Tunnel { kind, host, client_host, .. } = self.tunnels[tunnel as usize];
        let port = kind.port() + tunnel as u16;
        FlowKey {
            src: client_host_address(self.ip_version, client_host),
            dst: self.server_address(host),
            sport: port,
            dport: port,
            protocol: Protocol::UDP,
        }
    }

    pub(crate) fn check_tunnels(&self) -> Result<(), ScenarioError> {
        unique("tunnel", self.tunnels.iter().map(|tunnel| tunnel.name.clone()))?;
        for tunnel in &self.tunnels {
            self.check_ends(&tunnel.name, tunnel.host, 0, (0, 0))?;
            self.check_client_host(&format!("tunnel `{}`", tunnel.name), tunnel.client_host)?;
            if tunnel.on_first_hop && tunnel.kind != TunnelKind::WireGuard {
                return Err(ScenarioError::new(format!(
                    "tunnel `{}`: on_first_hop: only WireGuard keeps the hashes of all flows inside: leave it out",
                    tunnel.name
                )));
            }
        }
        for flow in &self.flows {
            self.check_inside(&flow.name, flow.tunnel, flow.host)?;
        }
        for test in &self.methods {
            self.check_inside(&test.name, test.tunnel, test.host)?;
        }
        for probe in &self.probes {
            self.check_inside(&probe.name, probe.tunnel, probe.host)?;
            if probe.tunnel.is_some() && probe.kind == ProbeKind::UdpTtl {
                return Err(ScenarioError::new(format!(
                    "probe `{}`: no router sees its time to live within a tunnel: leave `tunnel` out, or \
                     write kind icmp or udp",
                    probe.name
                )));
            }
        }
        Ok(())
    }

    /// Checks that what `name` sends through `tunnel` ends where the tunnel does.
    fn check_inside(
        &self,
        name: &str,
        tunnel: Option<u32>,
        host: u32,
    ) -> Result<(), ScenarioError> {
        let Some(number) = tunnel else { return Ok(()) };
        let Some(spec) = self.tunnels.get(number as usize) else {
            return Err(ScenarioError::new(format!(
                "`{name}`: tunnel {number} does not exist (there are {})",
                self.tunnels.len()
            )));
        };
        if spec.host == host {
            return Ok(());
        }
        let [own, end] = [host, spec.host].map(|host| &self.hosts[host as usize].name);
        Err(ScenarioError::new(format!(
            "`{name}`: it goes to `{own}`, but its tunnel `{}` ends at `{end}`: write one host for both",
            spec.name
        )))
    }
}

const UDP_HEADER: u32 = 8;
/// `message_data_len(0)`: type 4, receiver 4, counter 8; Poly1305's tag 16 (WireGuard, section 5.4.6 of the
/// paper: J. Donenfeld, NDSS 2017; messages.h).
const MESSAGE: u32 = 32;
/// `MESSAGE_PADDING_MULTIPLE`, messages.h.
const PADDING: u32 = 16;
/// The port of the examples of `wg`(8), which everybody uses.
const WIREGUARD_PORT: u16 = 51_820;
/// RFC 4303, section 2: SPI 4, sequence number 4, and the integrity check value; RFC 4106: 8 bytes of
/// initialization vector, 16 of that value.
const ESP: u32 = 4 + 4 + 8 + 16;
/// Length of the padding and the next header, with which the padding ends at a multiple of 4.
const ESP_TRAILER: u32 = 2;
const ESP_ALIGNMENT: u32 = 4;
/// RFC 3948, section 2.1.
const IPSEC_PORT: u16 = 4_500;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wireguard_pads_to_sixteen_but_not_beyond_its_mtu() {
        let kind = TunnelKind::WireGuard;
        assert_eq!([IpVersion::V4, IpVersion::V6].map(|ip| kind.inner_mtu(1500, ip)), [1420, 1420]);
        let bytes = |inner| kind.outer_bytes(inner, 1500, IpVersion::V4);
        // A full segment is not padded: 1424 would be more than goes through.
        assert_eq!([1420, 1419, 1408, 1401].map(bytes), [1480, 1480, 1468, 1468]);
        // ACK with timestamps, ping of 56 bytes.
        assert_eq!([52, 84].map(bytes), [124, 156]);
        assert_eq!(kind.outer_bytes(1420, 1500, IpVersion::V6), 1500);
        assert_eq!(kind.outer_bytes(104, 1500, IpVersion::V6), 192);
    }

    #[test]
    fn ipsec_fills_the_line_to_a_multiple_of_four() {
        let kind = TunnelKind::Ipsec;
        assert_eq!([IpVersion::V4, IpVersion::V6].map(|ip| kind.inner_mtu(1500, ip)), [1438, 1418]);
        let bytes = |inner| kind.outer_bytes(inner, 1500, IpVersion::V4);
        // A trailer of two, and as many zeros as are missing.
        assert_eq!([1438, 1437, 1435, 1434].map(bytes), [1500, 1500, 1500, 1496]);
        assert_eq!([52, 84].map(bytes), [116, 148]);
        assert_eq!(kind.outer_bytes(1418, 1500, IpVersion::V6), 1500);
    }
}
