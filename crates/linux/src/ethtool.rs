//! Features of a network device, by `ethtool`'s ioctls: include/uapi/linux/ethtool.h.

#![allow(unsafe_code, reason = "these ioctls have no safe wrapper")]

use std::io;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

/// Whether a feature of `device` is on; `None` if there is none of that name.
pub(crate) fn feature(device: &str, name: &str) -> io::Result<Option<bool>> {
    // The mask of sets of strings has 64 bits.
    let (mut mask, mut more) = (1 << ETH_SS_FEATURES, 0);
    if cfg!(target_endian = "big") {
        (mask, more) = (more, mask);
    }
    let mut about = [ETHTOOL_GSSET_INFO, 0, mask, more, 0];
    ask(device, &mut about)?;
    let count = about[4] as usize;
    let mut names = vec![0_u32; 3 + count * WORDS_A_NAME];
    names[..3].copy_from_slice(&[ETHTOOL_GSTRINGS, ETH_SS_FEATURES, count as u32]);
    ask(device, &mut names)?;
    let named = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.split(|&byte| byte == 0).next() == Some(name.as_bytes())
    };
    let Some(place) = names[3..].chunks(WORDS_A_NAME).position(named) else { return Ok(None) };
    let blocks = count.div_ceil(32);
    let mut features = vec![0_u32; 2 + blocks * WORDS_A_BLOCK];
    features[..2].copy_from_slice(&[ETHTOOL_GFEATURES, blocks as u32]);
    ask(device, &mut features)?;
    let active = features[2 + place / 32 * WORDS_A_BLOCK + ACTIVE];
    Ok(Some(active >> (place % 32) & 1 == 1))
}

/// Speed of a device in Mbit/s; `None` if it has none, or has no link now.
pub(crate) fn speed_mbps(device: &str) -> Option<u32> {
    let mut command = [0_u32; ETHTOOL_CMD_WORDS];
    command[0] = ETHTOOL_GSET;
    ask(device, &mut command).ok()?;
    // `struct ethtool_cmd` has it in two halves of 16 bits, each at the front of a word.
    let half =
        |word: u32| u32::from(u16::from_ne_bytes([word.to_ne_bytes()[0], word.to_ne_bytes()[1]]));
    let mbps = half(command[3]) | half(command[7]) << 16;
    // Unknown are -1 and, of some drivers, 0 and the greatest number of one half.
    (mbps != 0 && mbps != u32::MAX && mbps != u32::from(u16::MAX)).then_some(mbps)
}

/// Makes the device send packets one by one with their checksums done (`ethtool -K tx off tso off`).
///
/// # Errors
/// If there is no such device in the calling thread's network namespace, or the kernel refuses.
pub fn switch_offloads_off(device: &str) -> io::Result<()> {
    let all = [ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO];
    all.into_iter().try_for_each(|command| ask(device, &mut [command, 0]))
}

/// Has the kernel do or fill in what `words` say, which are as long as it wants them.
fn ask(device: &str, words: &mut [u32]) -> io::Result<()> {
    let near = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    // SAFETY: all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(device.bytes().take(libc::IFNAMSIZ - 1)) {
        // Signed on some processors, unsigned on others.
        *to = libc::c_char::from_ne_bytes([byte]);
    }
    request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: both live until the call returns, and the kernel writes no more than `words` announce.
    unsafe { siocethtool(near.as_raw_fd(), &raw mut request) }?;
    Ok(())
}

nix::ioctl_readwrite_bad!(siocethtool, libc::SIOCETHTOOL, libc::ifreq);

const ETHTOOL_GSET: u32 = 0x1;
const ETHTOOL_CMD_WORDS: usize = 11;
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const ETHTOOL_SGRO: u32 = 0x2c;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETH_SS_FEATURES: u32 = 4;
/// Words of 32 bits in a name of a feature (`ETH_GSTRING_LEN`).
const WORDS_A_NAME: usize = 8;
/// `struct ethtool_get_features_block`: available, requested, active, never changed.
const WORDS_A_BLOCK: usize = 4;
const ACTIVE: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_of_a_device_is_that_of_sysfs() {
        for device in std::fs::read_dir("/sys/class/net").unwrap() {
            let device = device.unwrap();
            let told = std::fs::read_to_string(device.path().join("speed")).ok();
            let told =
                told.and_then(|text| text.trim().parse::<u32>().ok()).filter(|&mbps| mbps > 0);
            assert_eq!(speed_mbps(&device.file_name().to_string_lossy()), told, "{device:?}");
        }
        assert_eq!(speed_mbps("weir-none"), None);
    }

    #[test]
    fn the_features_of_a_device_are_told_by_name() {
        assert_eq!(feature("lo", "loopback").unwrap(), Some(true));
        assert_eq!(feature("lo", "hw-tc-offload").unwrap(), Some(false));
        assert_eq!(feature("lo", "hw-tc").unwrap(), None);
        assert!(feature("weir-none", "loopback").is_err());
    }
}
