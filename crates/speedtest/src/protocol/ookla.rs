//! Ookla's protocols as its older clients speak them: lines over TCP, loss over UDP, files over HTTP; the
//! server's half, and of loss the client's too.
//!
//! There is no specification; this is what speedtest-cli 2.1.3 and the open reimplementations of the TCP
//! protocol (taganaka/SpeedTest, showwin/speedtest-go) send and expect.

use crate::protocol::QueryError;
use crate::protocol::answers::{Answer, HttpTest, HttpTestRequest, Receipt, Verb, random_payload};

/// A command of a client: one line over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Begins; with a name under which its datagrams come.
    Hello(Option<&'a str>),
    /// Wants to hear the time.
    Ping,
    /// Asks for a download of that many bytes, the words before and the line's end included.
    Download(u64),
    /// Announces an upload: its bytes with this line included, and those that follow it.
    Upload {
        /// Bytes of the upload, this line included.
        total: u64,
        /// Bytes of the upload that are still to come after this line.
        rest: u64,
    },
    /// Announces datagrams.
    StartLoss,
    /// Wants to hear how many of them arrived.
    Loss,
    /// Ends the connection.
    Quit,
}

/// Why a line is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LineError(&'static str);

impl<'a> Command<'a> {
    /// Reads a line without its end.
    ///
    /// # Errors
    /// If it is no command, or asks for more than [`MAX_BYTES`].
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        let length = line.len() as u64 + 1;
        let line = std::str::from_utf8(line).map_err(|_| LineError("a command is ASCII text"))?;
        let mut words = line.split_ascii_whitespace();
        let command = words.next().ok_or(LineError("a command is missing"))?;
        let mut size = || {
            let word = words.next().ok_or(LineError("a number of bytes is missing"))?;
            let size = word.parse().map_err(|_| LineError("a number of bytes is no number"))?;
            if size > MAX_BYTES { Err(LineError("more bytes than allowed")) } else { Ok(size) }
        };
        match command {
            "HI" => Ok(Self::Hello(words.next().filter(|name| name.len() <= MAX_NAME_BYTES))),
            "PING" => Ok(Self::Ping),
            "DOWNLOAD" => match size()? {
                total if total < MIN_DOWNLOAD_BYTES => {
                    Err(LineError("fewer bytes than the answer has"))
                }
                total => Ok(Self::Download(total)),
            },
            "UPLOAD" => {
                let total: u64 = size()?;
                let rest = total
                    .checked_sub(length)
                    .ok_or(LineError("fewer bytes than the command has"))?;
                Ok(Self::Upload { total, rest })
            }
            "INITPLOSS" => Ok(Self::StartLoss),
            "PLOSS" => Ok(Self::Loss),
            "QUIT" => Ok(Self::Quit),
            _ => Err(LineError("no such command")),
        }
    }
}

/// The answer to [`Command::Hello`].
pub const HELLO: &str = "HELLO 2.9 (2.9.0) 2021-09-01.0000.weir\n";
/// Prefix of a download, which counts among its bytes.
pub const DOWNLOAD_PREFIX: &[u8] = b"DOWNLOAD ";
/// The longest line that is read.
pub const MAX_LINE_BYTES: usize = 256;

/// The answer to [`Command::Ping`]: 19 bytes with the line's end, which one client insists on.
#[must_use]
pub fn pong(unix_ms: u64) -> String {
    format!("PONG {unix_ms:013}\n")
}

/// The answer to an upload.
#[must_use]
pub fn uploaded(bytes: u64, unix_ms: u64) -> String {
    format!("OK {bytes} {unix_ms}\n")
}

/// A datagram of the test of loss: `LOSS nonce index name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossDatagram<'a> {
    /// Number of the datagram, from 0.
    pub index: u32,
    /// The name that the client gave in its [`Command::Hello`].
    pub name: &'a str,
}

impl<'a> LossDatagram<'a> {
    /// Writes it; servers look at the index and the name only.
    #[must_use]
    pub fn text(&self, nonce: u64) -> String {
        format!("LOSS {nonce} {} {}", self.index, self.name)
    }

    /// Reads one, `None` if it is something else.
    #[must_use]
    pub fn parse(datagram: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(datagram.get(..datagram.len().min(MAX_LINE_BYTES))?).ok()?;
        let mut words = text.split_ascii_whitespace();
        if words.next()? != "LOSS" {
            return None;
        }
        let (_nonce, index, name) = (words.next()?, words.next()?, words.next()?);
        let index = index.parse().ok().filter(|&index| index < MAX_DATAGRAMS)?;
        (name.len() <= MAX_NAME_BYTES).then_some(Self { index, name })
    }
}

/// The datagrams of a test of loss that arrived.
#[derive(Clone, Debug, Default)]
pub struct LossCount {
    /// A bit an index.
    seen: Vec<u64>,
    received: u64,
    duplicates: u64,
    highest: Option<u32>,
}

impl LossCount {
    /// Counts a datagram that arrived; an index that [`LossDatagram::parse`] would not give is left out.
    pub fn arrived(&mut self, index: u32) {
        if index >= MAX_DATAGRAMS {
            return;
        }
        let (word, bit) = (index as usize / 64, 1_u64 << (index % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        self.received += 1;
        self.duplicates += u64::from(self.seen[word] & bit != 0);
        self.seen[word] |= bit;
        self.highest = self.highest.max(Some(index));
    }

    /// The answer to [`Command::Loss`]: all that arrived, those that did again, the highest index.
    #[must_use]
    pub fn answer(&self) -> String {
        format!("PLOSS {} {} {}\n", self.received, self.duplicates, self.highest.unwrap_or(0))
    }
}

/// Fields of the answer to [`Command::Loss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Datagrams that arrived, those that did again included.
    pub received: u64,
    /// Datagrams that arrived more than once.
    pub duplicates: u64,
    /// The highest index of them; 0 too if there were none.
    pub highest: u32,
}

impl LossReport {
    /// Reads a line without its end, `None` if it is something else or cannot be true.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != "PLOSS" {
            return None;
        }
        let report = Self {
            received: words.next()?.parse().ok()?,
            duplicates: words.next()?.parse().ok()?,
            highest: words.next()?.parse().ok()?,
        };
        let different = report.received.checked_sub(report.duplicates)?;
        (different <= u64::from(report.highest) + 1).then_some(report)
    }

    /// The share that was lost, from 0 to 1, of those up to the highest that arrived; `None` if none did.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        let different = (self.received - self.duplicates) as f64;
        (different > 0.0).then(|| 1.0 - different / (f64::from(self.highest) + 1.0))
    }
}

/// The bytes of the file `/speedtest/random{side}x{side}.jpg`, as large as on Ookla's servers.
#[must_use]
pub fn image_bytes(path: &str) -> Option<u64> {
    let name = path.strip_prefix("/speedtest/random")?.strip_suffix(".jpg")?;
    let (width, height) = name.split_once('x')?;
    let side: u32 = width.parse().ok()?;
    (width == height).then_some(())?;
    IMAGES.iter().find(|(image, _)| *image == side).map(|(_, bytes)| *bytes)
}

/// The configuration that speedtest-cli asks `www.speedtest.net` for before anything else, even for a test
/// against another server: how many requests of which sizes, and for how long.
#[must_use]
pub fn config(client: std::net::IpAddr) -> String {
    let client = client.to_canonical();
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<settings>
<client ip="{client}" lat="0" lon="0" isp="" isprating="0" rating="0" ispdlavg="0" ispulavg="0" loggedin="0" country="" />
<server-config threadcount="4" ignoreids="" notonmap="" forcepingid="" preferredserverid="" />
<download testlength="10" initialtest="250K" mintestsize="250K" threadsperurl="4" />
<upload testlength="10" ratio="5" initialtest="0" mintestsize="32K" threads="2" maxchunksize="512K" maxchunkcount="50" threadsperurl="4" />
</settings>
"#
    )
}

/// The server's half over HTTP: what speedtest-cli and clients of OoklaServer ask for.
pub static TEST: HttpTest = HttpTest {
    name: "ookla",
    summary: "Ookla's HTTP, TCP and UDP",
    serves: |path| {
        matches!(path, "/hello" | "/download" | "/upload" | "/speedtest-config.php")
            || path.starts_with("/speedtest/")
    },
    answer,
    server_timing: None,
};

fn answer(request: &HttpTestRequest<'_>) -> Result<Answer, QueryError> {
    let (path, gets) = (request.path, request.verb == Verb::Get);
    let text = |words: &str| Answer::Words("text/plain; charset=utf-8", words.to_owned());
    Ok(match path {
        _ if path == "/upload" || path.starts_with("/speedtest/upload.") => {
            // With GET a client finds out whether this is the right file.
            if gets { text(&Receipt::Size.words(0)) } else { Answer::Take(Receipt::Size) }
        }
        _ if !gets => Answer::OnlyVerb("GET"),
        "/hello" => text(&format!("hello {HELLO}")),
        "/speedtest/latency.txt" => text("test=test\n"),
        "/speedtest-config.php" => Answer::Words("text/xml; charset=utf-8", config(request.client)),
        "/download" => {
            let size = request.query.number("size", MAX_BYTES)?;
            random_payload(size.unwrap_or(MAX_BYTES))
        }
        _ => image_bytes(path).map_or(Answer::NotFound, random_payload),
    })
}

/// Size of `/download` if none is asked for, and largest size that may be asked for, in bytes: OoklaServer.
pub const MAX_BYTES: u64 = 10 << 30;
/// `DOWNLOAD ` and the line's end.
const MIN_DOWNLOAD_BYTES: u64 = 10;
/// A name is a UUID.
const MAX_NAME_BYTES: usize = 64;
/// Bits for a hundred times what clients send.
const MAX_DATAGRAMS: u32 = 1 << 16;
/// Side in pixels and bytes of the files of real servers.
const IMAGES: [(u32, u64); 10] = [
    (350, 245_388),
    (500, 505_544),
    (750, 1_118_012),
    (1000, 1_986_284),
    (1500, 4_468_241),
    (2000, 7_907_740),
    (2500, 12_407_926),
    (3000, 17_816_816),
    (3500, 24_262_167),
    (4000, 31_625_365),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        let parse = |line: &'static str| Command::parse(line.as_bytes());
        assert_eq!(parse("HI"), Ok(Command::Hello(None)));
        assert_eq!(parse("HI 1-2-3"), Ok(Command::Hello(Some("1-2-3"))));
        assert_eq!(parse("PING 1700000000000"), Ok(Command::Ping));
        assert_eq!(parse("DOWNLOAD 1000"), Ok(Command::Download(1000)));
        // "UPLOAD 100 0" and its end are 13 of the 100 bytes.
        assert_eq!(parse("UPLOAD 100 0"), Ok(Command::Upload { total: 100, rest: 87 }));
        assert_eq!(parse("QUIT\r"), Ok(Command::Quit));
        for wrong in [
            "",
            "GET /",
            "DOWNLOAD",
            "DOWNLOAD x",
            "DOWNLOAD 9",
            "UPLOAD 5",
            "DOWNLOAD 10737418241",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Command::parse(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn a_pong_has_nineteen_bytes() {
        assert_eq!(pong(1_700_000_000_000), "PONG 1700000000000\n");
        assert_eq!(pong(1_700_000_000_000).len(), 19);
    }

    #[test]
    fn loss_counts_what_came_and_what_came_twice() {
        let datagram = LossDatagram::parse(b"LOSS 7 3 abc").unwrap();
        assert_eq!(datagram, LossDatagram { index: 3, name: "abc" });
        assert_eq!(LossDatagram::parse(b"LOSS 7 65536 abc"), None);
        assert_eq!(LossDatagram::parse(b"WEIR"), None);
        let mut count = LossCount::default();
        for index in [0, 3, 3, 1, 400] {
            count.arrived(index);
        }
        assert_eq!(count.answer(), "PLOSS 5 1 400\n");
    }

    #[test]
    fn what_the_server_counted_is_what_the_client_reads() {
        let mut count = LossCount::default();
        for index in [0, 3, 3, 1, 9] {
            let datagram = LossDatagram { index, name: "abc" };
            let text = datagram.text(17);
            assert_eq!(LossDatagram::parse(text.as_bytes()), Some(datagram));
            count.arrived(index);
        }
        let report = LossReport::parse(count.answer().trim_end()).unwrap();
        assert_eq!(report, LossReport { received: 5, duplicates: 1, highest: 9 });
        assert_eq!(report.loss(), Some(0.6));
        let none = LossReport::parse(LossCount::default().answer().trim_end()).unwrap();
        assert_eq!(none.loss(), None);
        for wrong in ["", "PLOSS 1 0", "PLOSS 1 2 5", "PLOSS 7 0 5", "PONG 1 0 5", "PLOSS -1 0 5"] {
            assert_eq!(LossReport::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn images_have_the_sizes_of_real_servers() {
        assert_eq!(image_bytes("/speedtest/random350x350.jpg"), Some(245_388));
        assert_eq!(image_bytes("/speedtest/random4000x4000.jpg"), Some(31_625_365));
        assert_eq!(image_bytes("/speedtest/random350x500.jpg"), None);
        assert_eq!(image_bytes("/speedtest/random1x1.jpg"), None);
    }
}
