//! The log on standard error. Logging neither fails nor waits, whatever standard error is.
//!
//! Lines go through a bounded queue to a thread of their own, so that a full disk, a closed pipe or a reader
//! that stands still loses lines and holds up nothing else. Lines that were lost are counted.

use std::io::{self, IsTerminal, Write, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing::warn;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::error::ServeError;
use crate::options::Options;

/// Starts the log. A second server in one process shares the log of the first.
///
/// # Errors
/// If there is no thread for it.
pub(crate) fn start(options: &Options) -> Result<(), ServeError> {
    let (sender, entries) = sync_channel(QUEUE_LINES);
    if QUEUE.set(sender.clone()).is_err() {
        return Ok(());
    }
    thread::Builder::new()
        .name("log".into())
        .spawn(move || write_lines(&entries, stderr))
        .map_err(|error| ServeError::io("starting a thread", &error))?;
    let level = if options.verbose { LevelFilter::DEBUG } else { LevelFilter::INFO };
    // What the libraries beneath log is theirs.
    let ours = Targets::new().with_target("weir_serve", level);
    let builder = tracing_subscriber::fmt()
        .with_max_level(level)
        // Its own way to tell of a failed write is to print, which panics where standard error is broken.
        .log_internal_errors(false)
        .with_writer(Queue(sender))
        .with_target(false)
        .with_ansi(stderr().is_terminal());
    // The error is that whoever embeds the server has a log already.
    let _ = if options.json {
        builder.json().flatten_event(true).finish().with(ours).try_init()
    } else {
        builder.finish().with(ours).try_init()
    };
    Ok(())
}

/// Waits until what was logged so far is written, a second at most.
pub(crate) fn flush() {
    let Some(queue) = QUEUE.get() else { return };
    let (done, written) = channel();
    if queue.try_send(Entry::Flush(done)).is_ok() {
        // Standard error may stand still.
        let _ = written.recv_timeout(MAX_FLUSH);
    }
}

/// Lines that could not be written, since the process began.
pub(crate) fn lost_lines() -> u64 {
    LOST_LINES.load(Ordering::Relaxed)
}

/// A message to the log's thread.
enum Entry {
    Line(Vec<u8>),
    /// To be answered once all lines before it are written.
    Flush(std::sync::mpsc::Sender<()>),
}

/// Makes a [`Line`] for every event.
struct Queue(SyncSender<Entry>);

/// One line, which goes into the queue when it is dropped.
struct Line {
    queue: SyncSender<Entry>,
    text: Vec<u8>,
}

impl MakeWriter<'_> for Queue {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        Line { queue: self.0.clone(), text: Vec::new() }
    }
}

impl Write for Line {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() && self.queue.try_send(Entry::Line(text)).is_err() {
            LOST_LINES.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The log's thread. After lines were lost, the next one that can be written is followed by their number.
fn write_lines<W: Write>(entries: &Receiver<Entry>, sink: impl Fn() -> W) {
    let mut told = 0;
    while let Ok(entry) = entries.recv() {
        match entry {
            Entry::Line(text) => {
                if sink().write_all(&text).is_err() {
                    LOST_LINES.fetch_add(1, Ordering::Relaxed);
                } else if lost_lines() > told {
                    let lines = lost_lines() - told;
                    told += lines;
                    warn!(lines, "lines of this log were lost: it could not be written");
                }
            }
            // Nobody may be waiting any more.
            Entry::Flush(done) => drop(done.send(())),
        }
    }
}

static QUEUE: OnceLock<SyncSender<Entry>> = OnceLock::new();
static LOST_LINES: AtomicU64 = AtomicU64::new(0);
/// About 300 bytes each.
const QUEUE_LINES: usize = 4096;
const MAX_FLUSH: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A file whose disk is full for the first so many lines.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            if disk.0 > 0 {
                disk.0 -= 1;
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.1.extend_from_slice(data);
            Ok(data.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_or_queued_are_lost_and_counted() {
        let before = lost_lines();
        let (queue, entries) = sync_channel(3);
        let writer = Queue(queue.clone());
        for text in ["one\n", "two\n", "three\n", "four\n"] {
            writer.make_writer().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(lost_lines() - before, 1, "there is room for three");
        drop((writer, queue));
        let disk = Disk(Arc::new(Mutex::new((2, Vec::new()))));
        write_lines(&entries, || disk.clone());
        assert_eq!(lost_lines() - before, 3, "two met a full disk");
        assert_eq!(disk.0.lock().unwrap().1, b"three\n");
    }
}
