//! Services of a server, by name: routes, `--without` and the help find them here.
//!
//! A protocol is a file of its own, which declares a [`Service`], and its place in [`SERVICES`]. Speed tests
//! of plain HTTP are declared in [`weir_speedtest::protocol::answers`] and are all here by themselves.

use std::cmp::Ordering;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use weir_speedtest::protocol::answers::{HTTP_TESTS, HttpTest};

use crate::http::{Client, HttpRequest, HttpResponse};
use crate::{irtt, metrics, ndt7, page, requests, throughput1, weir};

/// Everything that can be switched off, in the order in which messages name it.
pub(crate) static SERVICES: LazyLock<Vec<Service>> = LazyLock::new(|| {
    let mut all = vec![page::SERVICE, weir::SERVICE, ndt7::SERVICE, throughput1::SERVICE];
    all.extend(HTTP_TESTS.iter().copied().map(Service::Http));
    all.extend([irtt::SERVICE, metrics::SERVICE]);
    all
});

/// Something that a server offers and that can be switched off.
#[derive(Clone, Copy, Debug)]
pub enum Service {
    /// A protocol with code of its own in this crate.
    Own(&'static Own),
    /// A speed test of plain HTTP.
    Http(&'static HttpTest),
}

/// A protocol with code of its own.
#[derive(Debug)]
pub struct Own {
    /// Name of the service, as `--without` has it.
    pub name: &'static str,
    /// Description of the service, in a few words.
    pub summary: &'static str,
    /// Its part over HTTP; `None` if it has none.
    pub(crate) http: Option<OverHttp>,
}

/// The part of a protocol that is asked for over HTTP.
#[derive(Debug)]
pub(crate) struct OverHttp {
    /// Whether a path belongs to it.
    pub serves: fn(&str) -> bool,
    /// Answers a request for one of its paths.
    pub answer: fn(Arc<Client>, HttpRequest) -> Answered,
    pub rules: Rules,
}

/// A response that is being made.
pub(crate) type Answered = Pin<Box<dyn Future<Output = HttpResponse> + Send>>;

/// Rules for requests, checked before a protocol sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    /// Whether it is never POSTed to. Where it may be, the protocol says more.
    pub only_reads: bool,
    /// Whether pages of other sites may read its answers.
    pub is_for_pages: bool,
    /// Whether the secret has to be told with the request. The page holds none, and Weir's own protocol has
    /// a better way to ask for it.
    pub needs_secret: bool,
    /// Whether each of its requests needs a connection that no other one uses at the same time.
    pub shares_no_connection: bool,
}

impl Rules {
    /// The rules for speed tests.
    pub const TEST: Self = Self {
        only_reads: false,
        is_for_pages: true,
        needs_secret: true,
        shares_no_connection: false,
    };
    /// The rules for what is only read.
    pub const READ: Self = Self { only_reads: true, ..Self::TEST };
}

impl Service {
    /// Everything that can be switched off.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &SERVICES
    }

    /// Name of the service, as `--without` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own(own) => own.name,
            Self::Http(test) => test.name,
        }
    }

    /// Description of the service, in a few words.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Own(own) => own.summary,
            Self::Http(test) => test.summary,
        }
    }

    /// Whether a path belongs to it.
    pub(crate) fn serves(self, path: &str) -> bool {
        match self {
            Self::Own(own) => own.http.as_ref().is_some_and(|http| (http.serves)(path)),
            Self::Http(test) => (test.serves)(path),
        }
    }

    /// Rules for its requests.
    pub(crate) fn rules(self) -> Rules {
        match self {
            Self::Own(Own { http: Some(http), .. }) => http.rules,
            Self::Own(_) | Self::Http(_) => Rules::TEST,
        }
    }

    /// Answers a request for one of its paths.
    pub(crate) async fn answer(self, client: &Arc<Client>, request: HttpRequest) -> HttpResponse {
        match self {
            Self::Own(own) => {
                let http = own.http.as_ref().expect("it has paths");
                (http.answer)(Arc::clone(client), request).await
            }
            Self::Http(test) => requests::answer(client, request, test).await,
        }
    }
}

/// Services are told apart by their names.
impl PartialEq for Service {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Service {}

impl PartialOrd for Service {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Service {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl ValueEnum for Service {
    fn value_variants<'a>() -> &'a [Self] {
        &SERVICES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.summary()))
    }
}
