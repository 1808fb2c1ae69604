//! Addresses and routes of a client with several paths (policy routing; RFC 1122, section 3.3.4, calls it multihomed).
//!
//! ```text
//! from the path's address, or bound to its device   the path's own table: all servers' addresses by its device
//! to the path's own server address                  its device
//! ```

use weir_core::End;
use weir_linux::{LinuxError, Netlink, PacketRule, index_of};
use weir_scenario::{ClientPaths, Scenario};

use crate::interface::{Interface, take_from_anybody, whole};

/// Gives the devices of the calling thread's namespace, the client's, their addresses and routes. The first path's
/// device has its address.
///
/// # Errors
/// If the kernel refuses, as one without policy routing does.
pub(crate) fn add_paths(scenario: &Scenario, paths: &ClientPaths) -> Result<(), LinuxError> {
    let netlink = Netlink::new()?;
    for path in 0..paths.count() {
        let device = Interface { end: End::Client, path }.device_name();
        let index = index_of(&device)?;
        take_from_anybody(&device)?;
        // Tables up to 252 are free.
        let table = path as u8 + 1;
        for ip in scenario.ip_versions() {
            let address = ClientPaths::client_address(ip, path);
            if path > 0 {
                netlink.add_address(index, address, whole(address))?;
            }
            for host in 0..paths.count() {
                let server = Scenario::server_address_in(ip, host);
                netlink.add_route_in(table, index, server, whole(server))?;
                if host == path {
                    netlink.add_route(index, server, whole(server))?;
                }
            }
            netlink.add_rule(PacketRule::From(address), table)?;
            netlink.add_rule(PacketRule::BoundTo { device: &device, like: address }, table)?;
        }
    }
    Ok(())
}
