//! Numbers in network byte order, at places that are checked by their slices.

/// The 16 bits at `at`, or `None` if they are not all there.
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The 32 bits at `at`, or `None` if they are not all there.
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Writes 16 bits at `at`, or says `None` and writes nothing where there is no room.
pub(crate) fn put_u16(bytes: &mut [u8], at: usize, value: u16) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}

/// Writes 32 bits at `at`, or says `None` and writes nothing where there is no room.
pub(crate) fn put_u32(bytes: &mut [u8], at: usize, value: u32) -> Option<()> {
    *bytes.get_mut(at..)?.first_chunk_mut()? = value.to_be_bytes();
    Some(())
}
