//! Writes what a shaper learns into its file while it works, and at its end.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use weir_core::{Duration, Rate, Time, error_in_words};
use weir_rate_control::{AutoSettings, Control};

use super::file::{Kept, VERSION, write, written};
use super::{now_s, unkept};
use crate::ShapeError;
use crate::settings::Settings;

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

/// Share by which a capacity must differ to be written anew.
const NEW_SHARE: f64 = 0.05;
/// Time until what is learned is first written: a load of some seconds.
const FIRST: Duration = Duration::from_secs(10);
/// Time between two writings, so that flash memory lasts; the last one is at the end.
const EVERY: Duration = Duration::from_secs(600);
/// Time after which what did not change is written once more.
const RENEWED_EVERY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::file::read;
    use super::super::tests::{Folder, settings};
    use super::*;

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
