//! Random bytes: the payload of loads, and bits for other uses.

use std::sync::LazyLock;

use bytes::Bytes;

/// Up to [`MAX_CHUNK_BYTES`] bytes that no line compresses.
///
/// All loads send the same ones: making new ones would be the slowest part of a test.
pub(crate) fn bytes(length: usize) -> Bytes {
    DATA.slice(..length)
}

/// Random bits that nobody can guess.
pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the system has random bits")
}

/// A mebibyte: the longest message of ndt7.
pub(crate) const MAX_CHUNK_BYTES: usize = 1 << 20;

static DATA: LazyLock<Bytes> = LazyLock::new(|| {
    let mut data = vec![0; MAX_CHUNK_BYTES];
    getrandom::fill(&mut data).expect("the system has random bits");
    data.into()
});
