//! Load on the line during a proof: flows to and from a `weir serve`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::Value;
use weir_client::{ClientError, MeasureRequest, Offer, loads_each_way, measure, offer};
use weir_core::{Time, error_in_words};
use weir_scenario::file::shape::host_and_port;
use weir_scenario::{RecordSink, Sink};
use weir_shape::Settings;
use weir_sockets::Target;

use crate::failure::Failure;

/// Four downloads and four uploads, again and again until they are ended.
#[derive(Debug)]
pub(crate) struct Load {
    wanted: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), ClientError>>>,
}

impl Load {
    /// Looks a server's name up.
    pub fn find(server: &str) -> Result<Target, Failure> {
        Ok(Target::find(&authority(server)?).map_err(ClientError::from)?)
    }

    /// Refuses a server that is not there or cannot load the line.
    pub fn check(server: &Target, settings: &Settings) -> Result<(), Failure> {
        match offer(server, secret(settings)?.as_deref())? {
            Offer::Missing(why) => Err(Failure::other(why)),
            Offer::Test(_) => Ok(()),
        }
    }

    /// Begins to load the line.
    pub fn begin(server: &str, settings: &Settings) -> Result<Self, Failure> {
        let request = MeasureRequest {
            hosts: vec![authority(server)?],
            ip: None,
            secret: secret(settings)?,
            // A server bounds how long a flow may take, so that a long load is several.
            scenario: loads_each_way(FLOWS, LENGTH_NS),
            seed: 1,
            ramp: None,
        };
        let wanted = Arc::new(AtomicBool::new(true));
        let mut sink = Unkept(Arc::clone(&wanted));
        let work = move || {
            while sink.0.load(Ordering::Relaxed) {
                measure(&request, &mut sink)?;
            }
            Ok(())
        };
        let thread =
            std::thread::Builder::new().name("load".to_owned()).spawn(work).map_err(|error| {
                Failure::other(format!("cannot start a thread: {}", error_in_words(&error)))
            })?;
        Ok(Self { wanted, thread: Some(thread) })
    }

    /// Why it does not load the line, if it ended by itself.
    pub fn failure(&mut self) -> Option<String> {
        if !self.wanted.load(Ordering::Relaxed) {
            return None;
        }
        let thread = self.thread.take_if(|thread| thread.is_finished())?;
        let why = match thread.join() {
            Ok(Ok(())) => "nobody ended it".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "its thread panicked".to_owned(),
        };
        Some(format!("the load ended by itself: {why}"))
    }

    /// Ends it soon, and waits for nothing.
    pub fn end(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
        if let Some(thread) = self.thread.take() {
            // What it still has to say, nobody wants to know.
            let _ = thread.join();
        }
    }
}

/// Keeps nothing: what the line carried for a proof is of no use to anybody.
struct Unkept(Arc<AtomicBool>);

impl Sink for Unkept {
    fn progress(&mut self, _now: Time) -> ControlFlow<()> {
        if self.0.load(Ordering::Relaxed) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

impl RecordSink for Unkept {
    fn note(&mut self, _key: &str, _value: Value) {}
}

/// Host and port of a `weir serve`, as an authority of a URL has them.
fn authority(server: &str) -> Result<String, Failure> {
    let (host, port) = host_and_port(server).map_err(Failure::usage)?;
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

/// The secret that the server asks for, if it does.
fn secret(settings: &Settings) -> Result<Option<String>, Failure> {
    let Some(file) = &settings.auth else { return Ok(None) };
    let secret =
        weir_sockets::read_secret(file).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(Some(String::from_utf8_lossy(secret.as_bytes()).into_owned()))
}

/// Each way, as the test `rrul_be` has them.
const FLOWS: usize = 4;
/// Below what `weir serve` allows a flow if nothing else is said.
const LENGTH_NS: u64 = 100_000_000_000;
