//! The file in which a shaper keeps what it learned of its line: what it says, and how it is read and written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};
use weir_core::{Rate, error_in_words};
use weir_rate_control::MIN_RATE;

use crate::files::read_text;

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    pub weir_shape_state: u32,
    pub device: String,
    /// When it was written, in seconds of Unix time.
    pub saved_s: u64,
    /// Gateway of the device by IPv4; `None` where none could be told.
    pub gateway: Option<Gateway>,
    /// Gateway of the device by IPv6, likewise.
    #[serde(default)]
    pub gateway6: Option<Gateway>,
    /// Whether the kernel said where routes lead: earlier versions did not ask for those of IPv6.
    #[serde(default)]
    pub routes_known: bool,
    /// Usual capacity out of the device, in bit/s; `None` before it was measured.
    pub up_bps: Option<u64>,
    /// Usual capacity into the device, in bit/s; `None` before it was measured.
    pub down_bps: Option<u64>,
}

/// The host to which a device sends what is not for its own network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gateway {
    /// `None` where the device has but one peer, as one of PPP.
    pub address: Option<IpAddr>,
    /// Its hardware address, if the kernel knew it: many networks have a 192.168.1.1.
    pub hardware: Option<String>,
}

impl Kept {
    /// The gateway of what was kept, if the ones `now`, by IPv4 and by IPv6, are others.
    ///
    /// Where each has one of another protocol alone they are others too; where one of both has none, or was not asked for,
    /// nothing is known.
    pub fn is_behind_another(&self, now: &[Option<Gateway>; 2]) -> Option<&Gateway> {
        let before = [&self.gateway, &self.gateway6];
        let mut is_known = false;
        for pair in before.into_iter().zip(now) {
            if let (Some(old), Some(new)) = pair {
                is_known = true;
                if !old.may_be(new) {
                    return Some(old);
                }
            }
        }
        let of_one_protocol = self.routes_known && !is_known && now.iter().any(Option::is_some);
        before.into_iter().flatten().next().filter(|_| of_one_protocol)
    }
}

impl Gateway {
    pub fn in_words(&self) -> String {
        match (self.address, &self.hardware) {
            (None, _) => "over a line without a gateway".to_owned(),
            (Some(address), None) => format!("behind {address}"),
            (Some(address), Some(hardware)) => format!("behind {address} ({hardware})"),
        }
    }

    /// Whether this may be `other`: what is not known of one of them tells nothing.
    pub fn may_be(&self, other: &Self) -> bool {
        let differ =
            self.hardware.as_ref().zip(other.hardware.as_ref()).is_some_and(|(a, b)| a != b);
        self.address == other.address && !differ
    }
}

/// Whether what is learned may be written into `file`: there is none, or it is such a file, if a broken one.
///
/// # Errors
/// If it is something else: what, in words that end a sentence.
pub fn check_place(file: &Path) -> Result<(), String> {
    if matches!(file.try_exists(), Ok(false)) {
        return Ok(());
    }
    let text = read_text(file, MAX_BYTES)?;
    // One that was cut short while it was written by others than this program may end anywhere.
    let length = text.len().min(BEGINNING.len());
    if text.as_bytes()[..length] == BEGINNING.as_bytes()[..length] {
        Ok(())
    } else {
        Err("it is a file of something else".to_owned())
    }
}

/// Why nothing can be written into `file`, as far as that is seen beforehand: it is put into its folder under another name, for
/// which the folder is made if there is none.
pub fn unwritable(file: &Path) -> Option<String> {
    let mut folders = file.ancestors().skip(1).map(|folder| match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    });
    let found = folders.find_map(|folder| match folder.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error)),
        Ok(place) if !place.is_dir() => Some(Err(Errno::ENOTDIR.into())),
        Ok(_) => {
            Some(access(folder, AccessFlags::W_OK | AccessFlags::X_OK).map_err(io::Error::from))
        }
    })?;
    found.err().map(|error| error_in_words(&error))
}

/// The content of the file, if there is one; else why it cannot be used.
pub fn read(file: &Path, device: &str) -> Result<Option<Kept>, String> {
    if matches!(file.try_exists(), Ok(false)) {
        return Ok(None);
    }
    let text = read_text(file, MAX_BYTES)?;
    let kept: Kept = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if kept.weir_shape_state != VERSION {
        return Err(format!("its version is {}, and {VERSION} is read", kept.weir_shape_state));
    }
    if kept.device != device {
        return Err("it is of another device".to_owned());
    }
    let least = MIN_RATE.as_bps();
    if let Some(bps) = [kept.up_bps, kept.down_bps].into_iter().flatten().find(|&bps| bps < least) {
        return Err(format!("{bps} bit/s is less than any shaper sets, {least}"));
    }
    let most = MOST.as_bps();
    if let Some(bps) = [kept.up_bps, kept.down_bps].into_iter().flatten().find(|&bps| bps > most) {
        return Err(format!("{bps} bit/s is more than any shaper sets, {most}"));
    }
    Ok(Some(kept))
}

/// Writes the file such that it is the old or the new one, whole, whatever happens meanwhile.
pub fn write(file: &Path, kept: &Kept) -> io::Result<()> {
    let folder = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", std::process::id()));
    let new = folder.join(name);
    // What an earlier one left; a link that somebody laid there is taken away, and not followed.
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let done = (|| {
        // It tells where a machine is at home.
        let mut written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let text = serde_json::to_string(kept).expect("plain JSON");
        written.write_all(text.as_bytes())?;
        written.write_all(b"\n")?;
        written.sync_all()?;
        fs::rename(&new, file)
    })();
    if done.is_err() {
        let _ = fs::remove_file(&new);
        return done;
    }
    File::open(folder)?.sync_all()
}

/// Gateways by IPv4 and by IPv6 as the file has them.
pub fn written(found: [Option<weir_linux::Gateway>; 2]) -> [Option<Gateway>; 2] {
    found.map(|gateway| {
        gateway.map(|gateway| Gateway {
            address: gateway.address,
            hardware: gateway.hardware.map(|bytes| {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
            }),
        })
    })
}

/// How such a file begins: with its first field.
const BEGINNING: &str = "{\"weir_shape_state\":";
/// Version of the file.
pub const VERSION: u32 = 1;
/// Length of such a file at most: they have some 200 bytes.
const MAX_BYTES: usize = 1 << 20;
/// More than any network device carries.
const MOST: Rate = Rate::from_bps(10_000_000_000_000);

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, GATEWAY, behind, kept};
    use super::*;

    #[test]
    fn a_network_is_another_by_either_protocol_or_by_having_but_the_other_one() {
        let peer = Gateway { address: None, hardware: None };
        let router = Gateway { address: Some("fe80::1".parse().unwrap()), hardware: None };
        let by = |gateway: Option<&Gateway>, gateway6: Option<&Gateway>| Kept {
            gateway: gateway.cloned(),
            gateway6: gateway6.cloned(),
            ..kept(0)
        };
        let (v4, v6) = (by(Some(&GATEWAY), None), by(None, Some(&router)));
        let both = by(Some(&GATEWAY), Some(&router));
        let now = |gateway: Option<&Gateway>, gateway6: Option<&Gateway>| {
            [gateway.cloned(), gateway6.cloned()]
        };
        assert_eq!(v4.is_behind_another(&now(Some(&GATEWAY), Some(&router))), None);
        assert_eq!(both.is_behind_another(&now(None, Some(&router))), None);
        // Before the network has an address nothing is known.
        assert_eq!(both.is_behind_another(&now(None, None)), None);
        assert_eq!(by(None, None).is_behind_another(&now(Some(&GATEWAY), None)), None);
        assert_eq!(v4.is_behind_another(&now(Some(&behind(9)), None)), Some(&GATEWAY));
        assert_eq!(v4.is_behind_another(&now(Some(&peer), None)), Some(&GATEWAY));
        assert_eq!(v4.is_behind_another(&now(None, Some(&router))), Some(&GATEWAY));
        assert_eq!(v6.is_behind_another(&now(Some(&GATEWAY), None)), Some(&router));
        // A file of an earlier version, which asked for gateways of IPv4 alone.
        let text = r#"{"weir_shape_state":1,"device":"eth0","saved_s":5,"gateway":{"address":"192.0.2.1","hardware":null},"up_bps":null,"down_bps":null}"#;
        let before: Kept = serde_json::from_str(text).unwrap();
        assert_eq!(before.is_behind_another(&now(None, Some(&router))), None);
        assert_eq!(before.is_behind_another(&now(Some(&behind(9)), None)), Some(&GATEWAY));
        let other = Gateway { hardware: Some("02:00:00:00:00:01".to_owned()), ..router.clone() };
        let here = Gateway { hardware: Some("02:00:00:00:00:02".to_owned()), ..router.clone() };
        let of = by(Some(&GATEWAY), Some(&other));
        assert_eq!(of.is_behind_another(&now(Some(&GATEWAY), Some(&here))), Some(&other));
        assert_eq!(other.in_words(), "behind fe80::1 (02:00:00:00:00:01)");
        assert_eq!(peer.in_words(), "over a line without a gateway");
    }

    #[test]
    fn what_somebody_laid_where_it_writes_is_not_followed() {
        let folder = Folder::new("laid");
        let file = folder.file();
        let place = file.parent().unwrap();
        fs::create_dir_all(place).unwrap();
        let victim = place.join("victim");
        fs::write(&victim, "mine").unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let laid = place.join(format!("{name}.{}", std::process::id()));
        std::os::unix::fs::symlink(&victim, &laid).unwrap();
        write(&file, &kept(0)).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert!(fs::symlink_metadata(&file).unwrap().is_file());
        assert!(fs::symlink_metadata(&laid).is_err());
    }
}
