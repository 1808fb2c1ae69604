//! Asking for memory before it is needed.

/// Asks the processor to load `thing`, which will be needed shortly. A hint: it changes nothing else.
#[inline]
pub fn prefetch<T: ?Sized>(thing: &T) {
    ask_for(std::ptr::from_ref(thing).cast(), size_of_val(thing));
}

/// As [`prefetch`], of the first `bytes` of `thing` alone.
#[inline]
pub fn prefetch_start<T: ?Sized>(thing: &T, bytes: usize) {
    ask_for(std::ptr::from_ref(thing).cast(), size_of_val(thing).min(bytes));
}

#[inline]
#[allow(unsafe_code, reason = "the intrinsic is declared unsafe although it only hints")]
fn ask_for(start: *const i8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let mut offset = 0;
        while offset < bytes {
            // SAFETY: the addresses lie within the thing, and a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
            offset += CACHE_LINE;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes);
}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;
