//! What a shaper learned of its line, kept from one run to the next.
//!
//! The usual capacity of each way stands in a small file of the device, so that already the first load after a
//! restart has its rate. It is no promise: where the line carries another rate by now, the controller finds that
//! as on any line that changed. Behind another gateway, or after [`MAX_LEARNED_AGE_S`], it is not used.

mod file;
mod keeper;

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::unistd::{AccessFlags, access, geteuid};
use weir_rate_control::{Control, MAX_LEARNED_AGE_S};

use self::file::{read, unwritable, written};
use crate::settings::Settings;
use crate::text::mbps;

pub(crate) use self::file::check_place;
pub(crate) use self::keeper::Keeper;

/// How a shaper begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beginning {
    /// What is known of the line and from where, in words; empty where nothing is to be learned.
    pub words: String,
    /// Why what was kept cannot be used, although it should.
    pub trouble: Option<String>,
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

/// What is said where nothing can be kept in `file`.
fn unkept(file: &Path, why: &str) -> String {
    format!(
        "what is learned of this line cannot be kept in `{}` ({why}); after a restart it is learned anew",
        file.display()
    )
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr};
    use std::os::unix::fs::PermissionsExt;

    use weir_rate_control::AutoSettings;

    use super::file::{Gateway, Kept, VERSION, write};
    use super::*;

    pub const GATEWAY: Gateway = behind(1);

    pub const fn behind(last: u8) -> Gateway {
        Gateway { address: Some(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))), hardware: None }
    }

    /// A folder of this test's own, which goes with it.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Self {
            let name = format!("weir-shape-learned-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        pub fn file(&self) -> PathBuf {
            self.0.join("deep/shape-nosuch0.json")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub fn settings(auto: AutoSettings, state: &Path) -> Settings {
        let given = weir_scenario::file::Written::empty();
        let settings = crate::read_settings("nosuch0", None, given).unwrap();
        Settings { control: Control::Auto(auto), state: Some(state.to_owned()), ..settings }
    }

    pub fn kept(age_s: u64) -> Kept {
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
}
