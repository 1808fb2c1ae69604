//! A video of adaptive bitrate, as DASH players load it (ISO/IEC 23009-1): segment after segment, each in the bitrate that
//! the path has carried.

use serde::{Deserialize, Serialize};
use weir_core::{Duration, Time};

use super::channel::{Channel, News};
use super::work::{Outcome, PERIODS_NS, Work, check_time};
use crate::rows::SegmentState;

/// A video that plays from the flow's start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VideoLoad {
    /// Bitrates that there are, in bit/s, the least first.
    pub bitrates_bps: Vec<u64>,
    /// How long a segment plays.
    pub segment_ns: u64,
    /// How much the player loads ahead.
    pub buffer_ns: u64,
}

impl VideoLoad {
    pub(super) fn check(&self) -> Result<(), String> {
        let rising = self.bitrates_bps.windows(2).all(|pair| pair[0] < pair[1]);
        if self.bitrates_bps.is_empty() || !rising || self.bitrates_bps[0] == 0 {
            return Err(
                "video.bitrates: write rates above 0, each higher than the one before".to_owned()
            );
        }
        check_time("video.segment", self.segment_ns, (100_000_000, 60_000_000_000))?;
        check_time("video.buffer", self.buffer_ns, PERIODS_NS)?;
        // With room for one the picture would stand still while each is fetched.
        let least = 2 * self.segment_ns;
        if self.buffer_ns < least {
            let [buffer, least] = [self.buffer_ns, least].map(Duration::from_nanos);
            return Err(format!("video.buffer {buffer}: write {least} or more, two segments"));
        }
        Ok(())
    }

    /// Bytes of a segment of bitrate number `place`.
    fn bytes(&self, place: usize) -> u64 {
        let bits = u128::from(self.bitrates_bps[place]) * u128::from(self.segment_ns);
        u64::try_from(bits / 8_000_000_000).unwrap_or(u64::MAX).max(1)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Video {
    load: VideoLoad,
    start: Time,
    channel: Option<Channel<()>>,
    /// The segment that is being loaded.
    segment: Option<Segment>,
    buffer: Buffer,
    /// Rates at which the last segments came, in bit/s, the newest last.
    carried: Vec<f64>,
    /// When the next segment is asked for, while the buffer is full.
    resumes: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    bitrate: usize,
    /// When it was wanted: the first one when the player opened its connection.
    begun: Time,
    /// When it was asked for.
    asked: Time,
    first_byte: Option<Duration>,
    bytes: u64,
}

/// What is loaded and not yet played.
#[derive(Clone, Copy, Debug, Default)]
struct Buffer {
    level: Duration,
    /// When the level was that.
    at: Time,
    plays: bool,
    /// Whether it has ever played.
    has_played: bool,
    /// Time without a picture since the last row, that before the first one not counted.
    stalled: Duration,
}

impl Buffer {
    /// Plays on to `now`, or stands still.
    fn advance(&mut self, now: Time) {
        let passed = now.since(self.at);
        self.at = now;
        let played = if self.plays { passed.min(self.level) } else { Duration::ZERO };
        self.level = self.level.saturating_sub(played);
        if self.has_played {
            self.stalled += passed.saturating_sub(played);
        }
        self.plays = self.plays && !self.level.is_zero();
    }

    /// A segment has come: it plays, or plays on.
    fn fill(&mut self, length: Duration) {
        self.level += length;
        (self.plays, self.has_played) = (true, true);
    }
}

impl Video {
    pub const fn new(load: VideoLoad, start: Time) -> Self {
        Self {
            load,
            start,
            channel: None,
            segment: None,
            buffer: Buffer {
                level: Duration::ZERO,
                at: start,
                plays: false,
                has_played: false,
                stalled: Duration::ZERO,
            },
            carried: Vec::new(),
            resumes: None,
        }
    }

    pub fn begins(&self) -> Option<Time> {
        if self.channel.is_none() { Some(self.start) } else { self.resumes }
    }

    #[expect(clippy::unused_self, reason = "as the others have it")]
    pub const fn due(&self) -> Option<Time> {
        None
    }

    pub fn on_due(&mut self, work: &mut Work<'_>) {
        if self.channel.is_none() && self.start <= work.now {
            self.segment = Some(Segment {
                bitrate: 0,
                begun: work.now,
                asked: work.now,
                first_byte: None,
                bytes: 0,
            });
            self.buffer.at = work.now;
            self.channel = Some(Channel::open(true, false, work));
        } else if self.resumes.is_some_and(|at| at <= work.now) {
            self.resumes = None;
            self.ask(work);
        }
    }

    pub fn on_received(&mut self, connection: u32, bytes: u64, work: &mut Work<'_>) {
        let mut left = bytes;
        while left > 0 {
            let Some(channel) = &mut self.channel else { return };
            if channel.connection != connection {
                return;
            }
            let answering = channel.answering().is_some();
            let before = left;
            let (rest, news) = channel.take(left);
            left = rest;
            if let Some(segment) = self.segment.as_mut().filter(|_| answering) {
                segment.first_byte.get_or_insert(work.now.since(segment.begun));
                segment.bytes += before - if news.is_some() { rest } else { 0 };
            }
            match news {
                None => return,
                Some(News::Ready) => self.ask_for_segment(work),
                Some(News::Complete(())) => self.complete(work),
            }
        }
    }

    /// Asks for the next segment, in the bitrate that the path has carried.
    fn ask(&mut self, work: &mut Work<'_>) {
        self.segment = Some(Segment {
            bitrate: self.choice(),
            begun: work.now,
            asked: work.now,
            first_byte: None,
            bytes: 0,
        });
        self.ask_for_segment(work);
    }

    fn ask_for_segment(&mut self, work: &mut Work<'_>) {
        let (Some(segment), Some(channel)) = (&mut self.segment, &mut self.channel) else { return };
        segment.asked = work.now;
        channel.ask((), self.load.bytes(segment.bitrate), work);
    }

    /// The greatest bitrate below nine tenths of the harmonic mean of the last three rates; the least at first.
    fn choice(&self) -> usize {
        if self.carried.is_empty() {
            return 0;
        }
        let inverse: f64 = self.carried.iter().map(|rate| 1.0 / rate).sum();
        let safe = SAFETY * self.carried.len() as f64 / inverse;
        self.load.bitrates_bps.iter().rposition(|&bitrate| bitrate as f64 <= safe).unwrap_or(0)
    }

    fn complete(&mut self, work: &mut Work<'_>) {
        let Some(segment) = self.segment else { return };
        let took = work.now.since(segment.asked).max(Duration::from_nanos(1));
        if self.carried.len() == SAMPLES {
            self.carried.remove(0);
        }
        self.carried.push(segment.bytes as f64 * 8.0 / took.as_secs_f64());
        self.buffer.advance(work.now);
        let length = Duration::from_nanos(self.load.segment_ns);
        self.buffer.fill(length);
        self.end(Outcome::Done, work);
        let room = Duration::from_nanos(self.load.buffer_ns).saturating_sub(length);
        let wait = self.buffer.level.saturating_sub(room);
        if wait.is_zero() {
            self.ask(work);
        } else {
            self.resumes = Some(work.now.saturating_add(wait));
        }
    }

    pub fn stop(&mut self, work: &mut Work<'_>) {
        // One that has not begun has nothing to play, and its start may lie ahead.
        let Some(channel) = self.channel.take() else { return };
        self.buffer.advance(work.now);
        self.end(Outcome::Cut, work);
        work.close(channel.connection);
    }

    fn end(&mut self, outcome: Outcome, work: &mut Work<'_>) {
        let Some(segment) = self.segment.take() else { return };
        let stalled = std::mem::take(&mut self.buffer.stalled);
        let row = work.row(segment.begun, outcome);
        row.first_byte = segment.first_byte;
        row.bytes = segment.bytes;
        row.segment = Some(SegmentState {
            bitrate_bps: self.load.bitrates_bps[segment.bitrate],
            buffer: self.buffer.level,
            stalled,
        });
    }
}

/// Share of the rate that the path has carried which a player dares to use: `bandwidthSafetyFactor` of dash.js.
const SAFETY: f64 = 0.9;
/// Segments whose rate counts: those of dash.js for videos that are not live.
const SAMPLES: usize = 3;

#[cfg(test)]
mod tests {
    use super::super::{Action, Application, Client};
    use super::*;

    /// Segments of 2 s in 1, 2 and 4 Mbit/s, of which 4 s are loaded ahead.
    fn player() -> Client {
        let load = VideoLoad {
            bitrates_bps: vec![1_000_000, 2_000_000, 4_000_000],
            segment_ns: 2_000_000_000,
            buffer_ns: 4_000_000_000,
        };
        load.check().unwrap();
        Client::new(&Application::Video(load), 0, (Time::ZERO, Time::from_millis(60_000)))
    }

    fn received(client: &mut Client, bytes: u64, ms: u64) -> Vec<Action> {
        let mut actions = Vec::new();
        client.on_received(0, bytes, Time::from_millis(ms), &mut actions);
        actions
    }

    /// Bytes of an answer with a segment of `mbps`.
    const fn answer(mbps: u64) -> u64 {
        let plain = mbps * 250_000 + 300;
        plain + plain.div_ceil(16_384) * 22
    }

    fn asks(actions: &[Action]) -> Vec<u64> {
        let response = |action: &Action| match action {
            Action::Ask { response, .. } => Some(*response),
            _ => None,
        };
        actions.iter().filter_map(response).collect()
    }

    #[test]
    fn the_bitrate_follows_what_the_path_carries_and_a_full_buffer_waits() {
        let mut video = player();
        let mut actions = Vec::new();
        video.on_due(Time::ZERO, &mut actions);
        assert_eq!(asks(&actions), [3_000], "the server's part of TLS");
        assert_eq!(asks(&received(&mut video, 3_000, 100)), [answer(1)], "the least first");
        // 251 kB in 400 ms are 5 Mbit/s, of which 4.5 may be used.
        assert_eq!(asks(&received(&mut video, answer(1), 500)), [answer(4)]);
        // 1 MB in 4 s are 2 Mbit/s: with the 5 before a harmonic mean of 2.87.
        assert_eq!(asks(&received(&mut video, answer(4), 4_500)), [answer(2)]);
        let rows: Vec<_> = video.take_rows().collect();
        let states: Vec<_> = rows.iter().filter_map(|row| row.segment).collect();
        let ms = Duration::from_millis;
        assert_eq!((rows[0].took, rows[0].first_byte), (ms(500), Some(ms(500))));
        assert_eq!((states[0].bitrate_bps, states[0].stalled), (1_000_000, Duration::ZERO));
        assert_eq!(states[1].stalled, ms(2_000), "2 s were loaded, and it took 4");
        assert_eq!((states[0].buffer, states[1].buffer), (ms(2_000), ms(2_000)));
        // 1 s later: 3 s are loaded, 2 fit besides, so that the next is asked for when 1 is played.
        assert_eq!(received(&mut video, answer(2), 5_500), []);
        assert_eq!(video.next_due(), Some(Time::from_millis(6_500)));
        actions.clear();
        video.on_due(Time::from_millis(6_500), &mut actions);
        assert_eq!(asks(&actions).len(), 1);
    }

    #[test]
    fn a_video_that_stands_still_at_the_end_says_for_how_long() {
        let mut video = player();
        let mut actions = Vec::new();
        video.on_due(Time::ZERO, &mut actions);
        received(&mut video, 3_000, 100);
        received(&mut video, answer(1), 500);
        video.stop(Time::from_millis(10_500), &mut actions);
        assert_eq!(actions.last(), Some(&Action::Close { connection: 0 }));
        let rows: Vec<_> = video.take_rows().collect();
        let last = rows[1].segment.unwrap();
        assert_eq!((rows[1].outcome, last.stalled), ("cut", Duration::from_millis(8_000)));
        assert_eq!(last.buffer, Duration::ZERO);
    }

    #[test]
    fn a_video_that_has_not_begun_stops_without_a_word() {
        let load = VideoLoad {
            bitrates_bps: vec![1_000_000],
            segment_ns: 1_000_000_000,
            buffer_ns: 2_000_000_000,
        };
        let times = (Time::from_millis(2_000), Time::from_millis(60_000));
        let mut video = Client::new(&Application::Video(load), 0, times);
        let mut actions = Vec::new();
        video.stop(Time::from_millis(1_000), &mut actions);
        assert_eq!((actions, video.take_rows().count()), (vec![], 0));
    }

    #[test]
    fn bitrates_that_do_not_rise_are_refused() {
        let load = VideoLoad { bitrates_bps: vec![2, 1], segment_ns: 1, buffer_ns: 1 };
        assert!(load.check().unwrap_err().starts_with("video.bitrates"));
        let short = VideoLoad {
            bitrates_bps: vec![1],
            segment_ns: 4_000_000_000,
            buffer_ns: 2_000_000_000,
        };
        assert_eq!(short.check().unwrap_err(), "video.buffer 2s: write 8s or more, two segments");
    }
}
