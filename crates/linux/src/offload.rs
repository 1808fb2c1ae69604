//! Offloads that may take packets of a device past its queues: flowtables of nf_tables, and filters in
//! hardware.

use crate::LinuxError;
use crate::ethtool::feature;
use crate::message::attributes;
use crate::nft::{NFGENMSG, Nft};

/// A table of flows that are forwarded without what others pass through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flowtable {
    /// Table that the flowtable belongs to, as `nft` writes it: family and name.
    pub table: String,
    /// Name of the flowtable.
    pub name: String,
    /// Whether the device itself forwards them, as far as it can (`flags offload`).
    pub in_hardware: bool,
}

/// The flowtables that take flows of `device`, in the calling thread's network namespace.
///
/// # Errors
/// If this user may not ask.
pub fn flowtables(device: &str) -> Result<Vec<Flowtable>, LinuxError> {
    let mut found = Vec::new();
    let asked = Nft::connect().and_then(|nft| {
        nft.list(NFT_MSG_GETFLOWTABLE, &mut |body| found.extend(read(body, device)))
    });
    match asked {
        Ok(()) => Ok(found),
        // A kernel without netfilter, without nf_tables, or from before flowtables.
        Err(error) if error.raw_os_error().is_some_and(|code| NONE.contains(&code)) => {
            Ok(Vec::new())
        }
        Err(error) => Err(LinuxError::io("cannot read the flowtables", error)),
    }
}

/// Whether `device` takes filters of traffic control into its hardware (`hw-tc-offload`).
#[must_use]
pub fn filters_in_hardware(device: &str) -> bool {
    // A device that tells nothing of its features, such as one without a driver's support, has none.
    feature(device, "hw-tc-offload").ok().flatten().unwrap_or(false)
}

/// Flowtable of an answer, if it is about `device`.
fn read(body: &[u8], device: &str) -> Option<Flowtable> {
    let (header, rest) = body.split_at_checked(NFGENMSG)?;
    let family = FAMILIES.iter().find(|(number, _)| *number == header[0])?.1;
    let mut table = Flowtable { table: String::new(), name: String::new(), in_hardware: false };
    let mut has_device = false;
    for (attribute, value) in attributes(rest) {
        match attribute {
            NFTA_FLOWTABLE_TABLE => table.table = format!("{family} {}", text(value)),
            NFTA_FLOWTABLE_NAME => table.name = text(value),
            NFTA_FLOWTABLE_FLAGS => {
                table.in_hardware = value.last().is_some_and(|flags| flags & NFT_FLOWTABLE_HW != 0);
            }
            NFTA_FLOWTABLE_HOOK => {
                let devices =
                    attributes(value).filter(|(what, _)| *what == NFTA_FLOWTABLE_HOOK_DEVS);
                has_device =
                    devices.flat_map(|(_, list)| attributes(list)).any(|(what, name)| match what {
                        NFTA_DEVICE_NAME => text(name) == device,
                        NFTA_DEVICE_PREFIX => device.starts_with(&text(name)),
                        _ => false,
                    });
            }
            _ => {}
        }
    }
    has_device.then_some(table)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value.strip_suffix(b"\0").unwrap_or(value)).into_owned()
}

/// How a kernel says that it knows nothing of them.
const NONE: [i32; 4] = [libc::EPROTONOSUPPORT, libc::EINVAL, libc::EOPNOTSUPP, libc::ENOENT];
/// `NFPROTO_*`, as `nft` writes them.
const FAMILIES: [(u8, &str); 5] =
    [(1, "inet"), (2, "ip"), (5, "netdev"), (7, "bridge"), (10, "ip6")];
// include/uapi/linux/netfilter/nf_tables.h
const NFT_MSG_GETFLOWTABLE: u16 = 23;
const NFTA_FLOWTABLE_TABLE: u16 = 1;
const NFTA_FLOWTABLE_NAME: u16 = 2;
const NFTA_FLOWTABLE_HOOK: u16 = 3;
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
const NFTA_FLOWTABLE_HOOK_DEVS: u16 = 3;
const NFTA_DEVICE_NAME: u16 = 1;
const NFTA_DEVICE_PREFIX: u16 = 2;
const NFT_FLOWTABLE_HW: u8 = 1;
#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Message, NESTED};

    fn answer(family: u8, devices: &[(u16, &str)], flags: u32) -> Vec<u8> {
        let mut message = Message::with_header(0, 0, &[family, 0, 0, 0]);
        message.put(NFTA_FLOWTABLE_TABLE, b"fw\0");
        message.put(NFTA_FLOWTABLE_NAME, b"fast\0");
        message.nest(NFTA_FLOWTABLE_HOOK | NESTED, |hook| {
            hook.put(1, &0_u32.to_be_bytes());
            hook.put(2, &0_u32.to_be_bytes());
            hook.nest(NFTA_FLOWTABLE_HOOK_DEVS | NESTED, |list| {
                devices.iter().for_each(|(kind, name)| list.put(*kind, name.as_bytes()));
            });
        });
        message.put(NFTA_FLOWTABLE_FLAGS, &flags.to_be_bytes());
        message.finish().split_off(16)
    }

    #[test]
    fn a_flowtable_is_known_by_its_devices() {
        let devices = [(NFTA_DEVICE_NAME, "eth0\0"), (NFTA_DEVICE_PREFIX, "wan")];
        let table = |in_hardware| {
            Some(Flowtable { table: "inet fw".to_owned(), name: "fast".to_owned(), in_hardware })
        };
        assert_eq!(read(&answer(1, &devices, 1), "eth0"), table(true));
        assert_eq!(read(&answer(1, &devices, 2), "wan7"), table(false));
        assert_eq!(read(&answer(1, &devices, 1), "eth01"), None);
        assert_eq!(read(&[], "eth0"), None);
    }
}
