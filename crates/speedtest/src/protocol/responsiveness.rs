//! The IETF's responsiveness test: where a client finds its URLs, and what a server answers there
//! (draft-ietf-ippm-responsiveness-09, section "Responsiveness Test Server API").

use serde::{Deserialize, Serialize};

use crate::protocol::answers::{Answer, HttpTest, Receipt, Verb};

/// Where the configuration is.
pub const CONFIG: &str = "/.well-known/nq";
/// Path of an answer of one byte.
pub const SMALL: &str = "/small";
/// Path of an answer of [`LARGE_BYTES`].
pub const LARGE: &str = "/large";
/// Path that takes uploads of any size.
pub const UPLOAD: &str = "/slurp";
/// The draft: "at least 8 GiB".
pub const LARGE_BYTES: u64 = 8 << 30;

/// The object at [`CONFIG`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// Version of the configuration: 1.
    pub version: u32,
    /// All of one host.
    pub urls: Urls,
}

/// The URLs under both sets of names: those of the draft, and the older ones that goresponsiveness reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Urls {
    /// URL of [`SMALL`].
    pub small_download_url: String,
    /// URL of [`LARGE`].
    pub large_download_url: String,
    /// URL of [`UPLOAD`].
    pub upload_url: String,
    /// Older name of `small_download_url`, with the same value.
    pub small_https_download_url: String,
    /// Older name of `large_download_url`, with the same value.
    pub large_https_download_url: String,
    /// Older name of `upload_url`, with the same value.
    pub https_upload_url: String,
}

impl Config {
    /// The configuration of a server that clients reach as `authority` (host, port unless 443, and a path
    /// that a proxy puts before the server's own). It
    /// names HTTPS, which the test is made for, whichever way it was asked for.
    #[must_use]
    pub fn at(authority: &str) -> Self {
        let url = |path: &str| format!("https://{authority}{path}");
        Self {
            version: 1,
            urls: Urls {
                small_download_url: url(SMALL),
                large_download_url: url(LARGE),
                upload_url: url(UPLOAD),
                small_https_download_url: url(SMALL),
                large_https_download_url: url(LARGE),
                https_upload_url: url(UPLOAD),
            },
        }
    }
}

/// The server's half.
pub static TEST: HttpTest = HttpTest {
    name: "rpm",
    summary: "the IETF's responsiveness test",
    serves: |path| matches!(path, CONFIG | SMALL | LARGE | UPLOAD),
    answer: |request| {
        Ok(match (request.path, request.verb) {
            (CONFIG, _) => match request.authority {
                Some(authority) => {
                    let config = serde_json::to_string(&Config::at(authority));
                    Answer::Words("application/json", config.expect("it is plain data"))
                }
                None => Answer::NoHost,
            },
            (SMALL, _) => Answer::Words("application/octet-stream", "w".to_owned()),
            (LARGE, _) => Answer::RandomPayload(LARGE_BYTES),
            (_, Verb::Post) => Answer::Take(Receipt::Empty),
            _ => Answer::OnlyVerb("POST"),
        })
    },
    server_timing: None,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_of_names_say_the_same() {
        let config = serde_json::to_value(Config::at("example.net:8080")).unwrap();
        assert_eq!(config["version"], 1);
        let urls = &config["urls"];
        assert_eq!(urls["large_download_url"], "https://example.net:8080/large");
        for (new, old) in [
            ("small_download_url", "small_https_download_url"),
            ("large_download_url", "large_https_download_url"),
            ("upload_url", "https_upload_url"),
        ] {
            assert_eq!(urls[new], urls[old]);
        }
    }
}
