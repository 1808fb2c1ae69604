//! What a shaper learned of its line, kept from one run to the next.
//!
//! The usual capacity of each way stands in a small file of the device, so that already the first load after a
//! restart has its rate. It is no promise: where the line carries another rate by now, the controller finds that
//! as on any line that changed. Behind another gateway, or after [`MAX_LEARNED_AGE_S`], it is not used.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::unistd::{AccessFlags, access, geteuid};
use serde::{Deserialize, Serialize};
use weir_core::{Duration, Rate, Time, error_in_words};
use weir_rate_control::{AutoSettings, Control, MAX_LEARNED_AGE_S, MIN_RATE};

use crate::ShapeError;
use crate::files::read_text;
use crate::settings::Settings;
use crate::text::mbps;

/// How a shaper begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// What is known of the line and from where, in words; empty where nothing is to be learned.
    pub words: String,
    /// Why what was kept cannot be used, although it should.
    pub trouble: Option<String>,
}

/// The content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    weir_shape_state: u32,
    device: String,
    /// When it was written, in seconds of Unix time.
    saved_s: u64,
    /// Gateway of the device by IPv4; `None` where none could be told.
    gateway: Option<Gateway>,
    /// Gateway of the device by IPv6, likewise.
    #[serde(default)]
    gateway6: Option<Gateway>,
    /// Whether the kernel said where routes lead: earlier versions did not ask for those of IPv6.
    #[serde(default)]
    routes_known: bool,
    /// Usual capacity out of the device, in bit/s; `None` before it was measured.
    up_bps: Option<u64>,
    /// Usual capacity into the device, in bit/s; `None` before it was measured.
    down_bps: Option<u64>,
}

/// The host to which a device sends what is not for its own network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gateway {
    /// `None` where the device has but one peer, as one of PPP.
    address: Option<IpAddr>,
    /// Its hardware address, if the kernel knew it: many networks have a 192.168.1.1.
    hardware: Option<String>,
}

impl Settings {
    /// Puts what was learned of the line into the settings of the controller.
    ///
    /// What stands in the place of the file but is none is left as it is: nothing is kept then.
    pub fn recall(&mut self) -> Beginning {
        if let Some(file) = &self.state
            && let Err(why) = check_place(file)
        {
            let trouble = Some(unkept(file, &why));
            self.state = None;
            return Beginning { words: String::new(), trouble };
        }
        let (Control::Auto(auto), Some(file)) = (&mut self.control, &self.state) else {
            return Beginning::default();
        };
        let place = file.display();
        // What cannot be written may still be read.
        let closed = unwritable(file).map(|why| unkept(file, &why));
        let anew = |why: &str| match &closed {
            None => format!("the line is learned anew{why}, and kept in `{place}`"),
            Some(_) => format!("the line is learned anew{why}"),
        };
        let kept = match read(file, &self.device) {
            Ok(None) => return Beginning { words: anew(""), trouble: closed },
            Ok(Some(kept)) => kept,
            Err(why) => {
                let trouble = Some(format!(
                    "what was learned of this line cannot be read from `{place}` ({why}); it is learned anew"
                ));
                return Beginning { words: anew(""), trouble };
            }
        };
        let age_s = age_s(kept.saved_s, now_s());
        if let Some(age_s) = age_s.filter(|age_s| *age_s > MAX_LEARNED_AGE_S) {
            let why = format!(": what was kept is {} old", in_words(age_s));
            return Beginning { words: anew(&why), trouble: closed };
        }
        let now = weir_linux::gateways(&self.device).map(written).unwrap_or_default();
        if let Some(then) = kept.is_behind_another(&now) {
            let why = format!(": what was kept is of another network, {}", then.in_words());
            return Beginning { words: anew(&why), trouble: closed };
        }
        auto.egress_known_bps = kept.up_bps.filter(|_| auto.egress_bps.is_none());
        auto.ingress_known_bps = kept.down_bps.filter(|_| auto.ingress_bps.is_none());
        let known = [("up", auto.egress_known_bps), ("down", auto.ingress_known_bps)];
        let known: Vec<_> = known
            .iter()
            .filter_map(|(way, bps)| Some(format!("{way} {} Mbit/s", mbps((*bps)?))))
            .collect();
        let words = match known.as_slice() {
            [] => anew(""),
            known => {
                let when = age_s.map_or_else(
                    || "at a time that the clock cannot tell".to_owned(),
                    |age_s| format!("{} ago", in_words(age_s)),
                );
                let known = known.join(", ");
                format!("it begins with what the line carried {when}: {known} (`{place}`)")
            }
        };
        Beginning { words, trouble: closed }
    }
}

impl Kept {
    /// The gateway of what was kept, if the ones `now`, by IPv4 and by IPv6, are others.
    ///
    /// Where each has one of another protocol alone they are others too; where one of both has none, or was not asked for,
    /// nothing is known.
    fn is_behind_another(&self, now: &[Option<Gateway>; 2]) -> Option<&Gateway> {
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
    fn in_words(&self) -> String {
        match (self.address, &self.hardware) {
            (None, _) => "over a line without a gateway".to_owned(),
            (Some(address), None) => format!("behind {address}"),
            (Some(address), Some(hardware)) => format!("behind {address} ({hardware})"),
        }
    }

    /// Whether this may be `other`: what is not known of one of them tells nothing.
    fn may_be(&self, other: &Self) -> bool {
        let differ =
            self.hardware.as_ref().zip(other.hardware.as_ref()).is_some_and(|(a, b)| a != b);
        self.address == other.address && !differ
    }
}

/// Writes what is learned into the file, from a thread of its own: a disk may take its time.
pub(crate) struct Keeper {
    device: String,
    /// What the file has, unless the last writing has failed.
    kept: [Option<Rate>; 2],
    failed: bool,
    /// When it may be written next.
    next: Time,
    /// When it is written next even if nothing has changed, so that its age is not that of the last change.
    renewed: Time,
    to_write: Option<Sender<Kept>>,
    troubles: Receiver<String>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// A keeper for `settings`; `None` where nothing is to be kept.
    pub fn new(settings: &Settings, now: Time) -> Result<Option<Self>, ShapeError> {
        let (Control::Auto(auto), Some(file)) = (settings.control, settings.state.clone()) else {
            return Ok(None);
        };
        let AutoSettings { egress_known_bps, ingress_known_bps, .. } = auto;
        let (to_write, orders) = mpsc::channel::<Kept>();
        let (trouble, troubles) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || {
                for kept in orders {
                    if let Err(why) = write(&file, &kept) {
                        // Whoever would hear of it may have ended.
                        let _ = trouble.send(unkept(&file, &error_in_words(&why)));
                    }
                }
            })
            .map_err(|error| ShapeError::io("cannot start a thread", error))?;
        Ok(Some(Self {
            device: settings.device.clone(),
            kept: [egress_known_bps, ingress_known_bps].map(|bps| bps.map(Rate::from_bps)),
            failed: false,
            next: now + FIRST,
            renewed: now + RENEWED_EVERY,
            to_write: Some(to_write),
            troubles,
            thread: Some(thread),
        }))
    }

    /// Has `learned` written if it is new, or the file is a day old, and the time has come. Returns why something could not be.
    pub fn look(&mut self, learned: [Option<Rate>; 2], now: Time) -> Option<String> {
        let is_old = now >= self.renewed && learned.iter().any(Option::is_some);
        if now >= self.next && (is_old || self.is_new(learned)) {
            self.keep(learned);
            self.next = now + EVERY;
            self.renewed = now + RENEWED_EVERY;
        }
        let trouble = self.troubles.try_recv().ok();
        self.failed |= trouble.is_some();
        trouble
    }

    /// Has `learned` written if it is new, and waits for that. Returns why it could not be.
    pub fn end(&mut self, learned: [Option<Rate>; 2]) -> Option<String> {
        self.failed |= self.troubles.try_iter().count() > 0;
        if self.is_new(learned) {
            self.keep(learned);
        }
        self.to_write = None;
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
        self.troubles.try_iter().last()
    }

    /// Whether the file has something else, as far as is known.
    fn is_new(&self, learned: [Option<Rate>; 2]) -> bool {
        if self.failed {
            return true;
        }
        let bps = |rate: Option<Rate>| rate.map(|rate| rate.as_bps() as f64);
        learned.into_iter().zip(self.kept).any(|(now, before)| match (bps(now), bps(before)) {
            (Some(now), Some(before)) => (now / before - 1.0).abs() > NEW_SHARE,
            (now, None) => now.is_some(),
            (None, Some(_)) => false,
        })
    }

    fn keep(&mut self, learned: [Option<Rate>; 2]) {
        self.failed = false;
        for (kept, now) in self.kept.iter_mut().zip(learned) {
            *kept = now.or(*kept);
        }
        let [up_bps, down_bps] = self.kept.map(|rate| rate.map(Rate::as_bps));
        let routes = weir_linux::gateways(&self.device).ok();
        let routes_known = routes.is_some();
        let [gateway, gateway6] = routes.map(written).unwrap_or_default();
        let kept = Kept {
            weir_shape_state: VERSION,
            device: self.device.clone(),
            saved_s: now_s(),
            gateway,
            gateway6,
            routes_known,
            up_bps,
            down_bps,
        };
        if let Some(to_write) = &self.to_write {
            let _ = to_write.send(kept);
        }
    }
}

/// Where what is learned of a device's line is kept unless another place is named; `None` if nowhere.
///
/// The environment variable [`STATE_VARIABLE`] may name a file, or say `none`. Otherwise that is the service's folder (`STATE_DIRECTORY` of systemd), the user's (`XDG_STATE_HOME`), root's
/// `/var/lib/weir`, or `~/.local/state/weir`, in this order.
#[must_use]
pub fn usual_state_file(device: &str) -> Option<PathBuf> {
    match std::env::var_os(STATE_VARIABLE) {
        Some(said) if said == "none" => return None,
        Some(said) if !said.is_empty() => return std::path::absolute(said).ok(),
        _ => {}
    }
    let folder = |name: &str| {
        let value = std::env::var_os(name)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    // Root of a user namespace alone may not write there.
    let roots = || {
        let is_root =
            geteuid().is_root() && access(Path::new("/var/lib"), AccessFlags::W_OK).is_ok();
        is_root.then(|| PathBuf::from("/var/lib/weir"))
    };
    let folder = folder("STATE_DIRECTORY")
        .or_else(|| Some(folder("XDG_STATE_HOME")?.join("weir")))
        .or_else(roots)
        .or_else(|| Some(folder("HOME")?.join(".local/state/weir")))?;
    Some(folder.join(format!("shape-{device}.json")))
}

/// Whether what is learned may be written into `file`: there is none, or it is such a file, if a broken one.
///
/// # Errors
/// If it is something else: what, in words that end a sentence.
pub(crate) fn check_place(file: &Path) -> Result<(), String> {
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
fn unwritable(file: &Path) -> Option<String> {
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

/// What is said where nothing can be kept in `file`.
fn unkept(file: &Path, why: &str) -> String {
    format!(
        "what is learned of this line cannot be kept in `{}` ({why}); after a restart it is learned anew",
        file.display()
    )
}

/// The content of the file, if there is one; else why it cannot be used.
fn read(file: &Path, device: &str) -> Result<Option<Kept>, String> {
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
fn write(file: &Path, kept: &Kept) -> io::Result<()> {
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
fn written(found: [Option<weir_linux::Gateway>; 2]) -> [Option<Gateway>; 2] {
    found.map(|gateway| {
        gateway.map(|gateway| Gateway {
            address: gateway.address,
            hardware: gateway.hardware.map(|bytes| {
                bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
            }),
        })
    })
}

/// How long ago something was saved, in seconds; `None` if the clock was not set then or is not now, as on a router
/// without a battery that has not heard of the time yet.
fn age_s(saved_s: u64, now_s: u64) -> Option<u64> {
    let was_set = saved_s.min(now_s) >= CLOCK_SET_S;
    (was_set && saved_s <= now_s + CLOCK_STEP_S).then(|| now_s.saturating_sub(saved_s))
}

/// Seconds of Unix time.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A time in its greatest unit.
fn in_words(seconds: u64) -> String {
    let units = [(86_400, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (length, unit) =
        units.into_iter().find(|(length, _)| seconds >= *length).unwrap_or((1, "second"));
    let count = seconds / length;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// The first second of 2026: a clock that says less was not set.
const CLOCK_SET_S: u64 = 1_767_225_600;
/// By how much a clock that is set may be set back.
const CLOCK_STEP_S: u64 = 60;

/// Environment variable with the place of the file: for programs on a line that is not this machine's own.
pub const STATE_VARIABLE: &str = "WEIR_SHAPE_STATE";
/// How such a file begins: with its first field.
const BEGINNING: &str = "{\"weir_shape_state\":";
/// Version of the file.
const VERSION: u32 = 1;
/// Length of such a file at most: they have some 200 bytes.
const MAX_BYTES: usize = 1 << 20;
/// Share by which a capacity must differ to be written anew.
const NEW_SHARE: f64 = 0.05;
/// Time until what is learned is first written: a load of some seconds.
const FIRST: Duration = Duration::from_secs(10);
/// Time between two writings, so that flash memory lasts; the last one is at the end.
const EVERY: Duration = Duration::from_secs(600);
/// Time after which what did not change is written once more.
const RENEWED_EVERY: Duration = Duration::from_secs(86_400);

/// More than any network device carries.
const MOST: Rate = Rate::from_bps(10_000_000_000_000);

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const GATEWAY: Gateway = behind(1);

    const fn behind(last: u8) -> Gateway {
        Gateway { address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))), hardware: None }
    }

    /// A folder of this test's own, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("weir-shape-learned-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        fn file(&self) -> PathBuf {
            self.0.join("deep/shape-nosuch0.json")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn settings(auto: AutoSettings, state: &Path) -> Settings {
        let given = weir_scenario::file::Written::empty();
        let settings = crate::read_settings("nosuch0", None, given).unwrap();
        Settings { control: Control::Auto(auto), state: Some(state.to_owned()), ..settings }
    }

    fn kept(age_s: u64) -> Kept {
        Kept {
            weir_shape_state: VERSION,
            device: "nosuch0".to_owned(),
            saved_s: now_s() - age_s,
            gateway: Some(GATEWAY),
            gateway6: None,
            routes_known: true,
            up_bps: Some(38_400_000),
            down_bps: None,
        }
    }

    #[test]
    fn what_was_kept_is_there_for_the_next() {
        let folder = Folder::new("kept");
        let file = folder.file();
        let mut first = settings(AutoSettings::default(), &file);
        let anew = format!("the line is learned anew, and kept in `{}`", file.display());
        assert_eq!(first.recall(), Beginning { words: anew, trouble: None });
        write(&file, &kept(7300)).unwrap();
        let words = format!(
            "it begins with what the line carried 2 hours ago: up 38.40 Mbit/s (`{}`)",
            file.display()
        );
        assert_eq!(first.recall(), Beginning { words, trouble: None });
        let known = AutoSettings { egress_known_bps: Some(38_400_000), ..AutoSettings::default() };
        assert_eq!(first.control, Control::Auto(known));
        assert_eq!(first.check().map_err(|error| error.to_string()), Ok(()));
        // A rate that stays needs nothing of it, and a bound stays one.
        let stays = AutoSettings { egress_bps: Some(9_000_000), ..AutoSettings::default() };
        let mut second = settings(stays, &file);
        assert!(second.recall().words.starts_with("the line is learned anew"));
        assert_eq!(second.control, Control::Auto(stays));
        // Nothing else lies beside it.
        assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_old_or_of_another_network_is_not_used() {
        let folder = Folder::new("old");
        let file = folder.file();
        write(&file, &kept(MAX_LEARNED_AGE_S + 86_400)).unwrap();
        let mut old = settings(AutoSettings::default(), &file);
        let said = old.recall();
        assert!(said.words.contains("anew: what was kept is 31 days old"), "{said:?}");
        assert_eq!(old.control, Control::Auto(AutoSettings::default()));
        // A clock that was not set, now or then, tells no age.
        for saved_s in [now_s() + 1_000_000, 0, 40] {
            write(&file, &Kept { saved_s, ..kept(0) }).unwrap();
            let words = old.recall().words;
            assert!(words.contains("carried at a time that the clock cannot tell: up"), "{words}");
        }
        assert_eq!(age_s(now_s(), 10), None);
        assert_eq!(age_s(now_s() + 5, now_s()), Some(0));
        let known = |hardware: &str| Gateway { hardware: Some(hardware.to_owned()), ..GATEWAY };
        assert!(GATEWAY.may_be(&known("02:00:00:00:00:01")));
        assert!(!known("02:00:00:00:00:02").may_be(&known("02:00:00:00:00:01")));
        assert!(!GATEWAY.may_be(&behind(254)));
    }

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

    #[test]
    fn a_broken_file_is_told_of_and_harms_nothing() {
        let folder = Folder::new("broken");
        let file = folder.file();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let text = |kept: &Kept| serde_json::to_string(kept).unwrap();
        for (content, why) in [
            (String::new(), "EOF while parsing"),
            (text(&kept(0))[..40].to_owned(), "EOF while parsing"),
            (text(&Kept { weir_shape_state: 2, ..kept(0) }), "its version is 2, and 1 is read"),
            (text(&Kept { device: "eth9".to_owned(), ..kept(0) }), "it is of another device"),
            (text(&Kept { down_bps: Some(3), ..kept(0) }), "3 bit/s is less than any shaper sets"),
            (
                text(&Kept { up_bps: Some(u64::MAX), ..kept(0) }),
                "is more than any shaper sets, 10000000000000",
            ),
            ("{\"weir_shape_state\":1,\"up_bps\":-1}".to_owned(), "invalid value"),
        ] {
            fs::write(&file, &content).unwrap();
            let mut settings = settings(AutoSettings::default(), &file);
            let said = settings.recall();
            assert!(
                said.trouble.as_ref().is_some_and(|said| said.contains(why)),
                "{content}: {said:?}"
            );
            assert_eq!(settings.control, Control::Auto(AutoSettings::default()));
        }
    }

    #[test]
    fn what_is_of_something_else_stays_as_it_is() {
        let folder = Folder::new("others");
        let file = folder.file();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "root:x:0:0\n").unwrap();
        let mut settings = settings(AutoSettings::default(), &file);
        let said = settings.recall();
        assert!(said.trouble.unwrap().contains("(it is a file of something else)"));
        assert_eq!((settings.state.take(), fs::read(&file).unwrap().len()), (None, 11));
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        settings.state = Some(file);
        assert!(
            settings.recall().trouble.unwrap().contains("(it is a folder, and no regular file)")
        );
        assert_eq!(settings.state, None);
    }

    #[test]
    fn what_is_new_is_written_after_ten_seconds_then_every_ten_minutes_and_at_the_end() {
        let folder = Folder::new("keeper");
        let file = folder.file();
        let settings = settings(AutoSettings::default(), &file);
        let mut keeper = Keeper::new(&settings, Time::ZERO).unwrap().unwrap();
        let learned = |up_kbit| [Some(Rate::from_kbit(up_kbit)), None];
        let mut written = Vec::new();
        for (at_s, up_kbit) in
            [(9, 20_000), (10, 20_000), (11, 30_000), (610, 20_900), (611, 30_000)]
        {
            assert_eq!(keeper.look(learned(up_kbit), Time::from_millis(at_s * 1000)), None);
            written.push(keeper.kept[0].map(Rate::as_bps));
        }
        let expected = [None, Some(20), Some(20), Some(20), Some(30)];
        assert_eq!(written, expected.map(|mbit: Option<u64>| mbit.map(|mbit| mbit * 1_000_000)));
        // What stays as it was is no older than a day.
        let day_ms = 86_400_000;
        for (at_ms, is_renewed) in [(day_ms, false), (day_ms + 611_000, true), (2 * day_ms, false)]
        {
            keeper.look(learned(30_000), Time::from_millis(at_ms));
            assert_eq!(keeper.next == Time::from_millis(at_ms) + EVERY, is_renewed, "{at_ms}");
        }
        keeper.end([None, Some(Rate::from_mbit(90))]);
        let found = read(&file, "nosuch0").unwrap().unwrap();
        assert_eq!((found.up_bps, found.down_bps), (Some(30_000_000), Some(90_000_000)));
        // Nothing is kept of rates that were set.
        let control = Control::Fixed { egress_bps: Some(1_000_000), ingress_bps: None };
        assert!(Keeper::new(&Settings { control, ..settings }, Time::ZERO).unwrap().is_none());
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_of() {
        let folder = Folder::new("full");
        fs::write(&folder.0, "no folder").unwrap();
        let mut keeper =
            Keeper::new(&settings(AutoSettings::default(), &folder.file()), Time::ZERO)
                .unwrap()
                .unwrap();
        let why = keeper.end([Some(Rate::from_mbit(1)), None]).unwrap();
        assert!(why.contains("cannot be kept in") && why.contains("(not a directory)"), "{why}");
        fs::remove_file(&folder.0).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_written_is_promised_by_nobody() {
        let folder = Folder::new("promised");
        fs::write(&folder.0, "no folder").unwrap();
        let said = settings(AutoSettings::default(), &folder.file()).recall();
        fs::remove_file(&folder.0).unwrap();
        assert_eq!(said.words, "");
        assert_eq!(said.trouble, Some(unkept(&folder.file(), "not a directory")));
        assert_eq!(unwritable(&folder.file()), None, "its folders can be made");
        // What nobody may write into is no place either, but for root.
        fs::create_dir(&folder.0).unwrap();
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o555)).unwrap();
        let refused = (!geteuid().is_root()).then(|| "permission denied".to_owned());
        assert_eq!(unwritable(&folder.file()), refused);
        fs::remove_dir(&folder.0).unwrap();
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_at_the_end() {
        let learned = [Some(Rate::from_mbit(1)), None];
        for is_mended in [false, true] {
            let folder = Folder::new(if is_mended { "mended" } else { "stays-full" });
            fs::write(&folder.0, "no folder").unwrap();
            let settings = settings(AutoSettings::default(), &folder.file());
            let mut keeper = Keeper::new(&settings, Time::ZERO).unwrap().unwrap();
            while keeper.look(learned, Time::from_millis(10_000)).is_none() {
                std::thread::yield_now();
            }
            if is_mended {
                fs::remove_file(&folder.0).unwrap();
            }
            assert_eq!(keeper.end(learned).is_none(), is_mended);
            assert_eq!(folder.file().exists(), is_mended);
            let _ = fs::remove_file(&folder.0);
        }
    }
}
