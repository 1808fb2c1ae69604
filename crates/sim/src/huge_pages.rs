//! Large pages for large arrays.
//!
//! With many connections each packet needs memory that lies far from that of the packet before it, and every new page
//! costs the processor a walk through its page tables, twice as deep on a virtual machine. Pages of 2 MiB spare most walks.

/// An empty array with room for that many things, on large pages where the system has them. A hint: it changes nothing else.
pub(crate) fn with_capacity<T>(things: usize) -> Vec<T> {
    let mut array = Vec::with_capacity(things);
    if things * size_of::<T>() >= WORTH_BYTES {
        advise(array.spare_capacity_mut());
    }
    array
}

#[cfg(target_os = "linux")]
#[allow(
    unsafe_code,
    reason = "the system is told how the memory will be used, and not to do anything with it"
)]
fn advise<T>(room: &mut [T]) {
    let bytes = room.as_mut_ptr_range();
    let start = (bytes.start as usize).next_multiple_of(PAGE_BYTES);
    let end = bytes.end as usize;
    if start < end {
        // SAFETY: the range lies within memory that the caller has, and the advice leaves its content as it is.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn advise<T>(_: &mut [T]) {}

/// Less than this is on few pages.
const WORTH_BYTES: usize = 4 << 20;
/// `madvise` wants whole pages; of the smallest, which Linux has on all that it runs on, 64 KiB is a multiple.
#[cfg(target_os = "linux")]
const PAGE_BYTES: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_of_any_size_hold_what_they_are_asked_to() {
        for things in [0, 1, 1_000, WORTH_BYTES / 8, 3 * WORTH_BYTES / 8 + 1] {
            let mut array = with_capacity::<u64>(things);
            assert!(array.is_empty() && array.capacity() >= things);
            array.extend(0..things as u64);
            assert!(array.iter().zip(0..).all(|(&thing, number)| thing == number));
        }
    }
}
