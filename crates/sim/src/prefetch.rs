//! Asking for memory before it is needed.

/// Asks the processor to load `thing`, which will be needed shortly. A hint: it changes nothing else.
#[inline]
#[allow(unsafe_code, reason = "the intrinsic is declared unsafe although it only hints")]
pub(crate) fn prefetch<T>(thing: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(thing).cast::<i8>();
        let mut offset = 0;
        while offset < size_of::<T>() {
            // SAFETY: the addresses lie within `thing`, and a prefetch never faults.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.add(offset)) };
            offset += CACHE_LINE;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = thing;
}

#[cfg(target_arch = "x86_64")]
const CACHE_LINE: usize = 64;
