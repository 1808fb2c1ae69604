//! Addresses of hosts, as the system looks them up.

use std::ffi::{CStr, CString};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

/// Error of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LookupError {
    /// Nobody answers for now, such as while the network is not up yet (`EAI_AGAIN`).
    #[error("nobody answers what its address is")]
    Unanswered,
    /// The name is that of no host.
    #[error("no such host is known")]
    Unknown,
}

/// The address of a host, of which `host` is the name or the address itself.
///
/// # Errors
/// If it has none, or nobody says for now.
pub fn address_of(host: &str) -> Result<IpAddr, LookupError> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let name = CString::new(host).map_err(|_| LookupError::Unknown)?;
    look_up(&name)
}

fn look_up(name: &CStr) -> Result<IpAddr, LookupError> {
    let mut found: *mut libc::addrinfo = std::ptr::null_mut();
    // SAFETY: all zeros ask for nothing but what is set below.
    #[allow(unsafe_code, reason = "plain numbers and null pointers")]
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_DGRAM;
    // SAFETY: the name ends with a zero, and all of them outlive the call.
    #[allow(unsafe_code, reason = "the standard library does not tell EAI_AGAIN")]
    let code = unsafe {
        libc::getaddrinfo(name.as_ptr(), std::ptr::null(), &raw const hints, &raw mut found)
    };
    match code {
        0 => {}
        libc::EAI_AGAIN => return Err(LookupError::Unanswered),
        _ => return Err(LookupError::Unknown),
    }
    // SAFETY: the call has filled the list, which is freed once and not used afterwards.
    #[allow(unsafe_code, reason = "a list of the C library")]
    unsafe {
        let address = first(found);
        libc::freeaddrinfo(found);
        address.ok_or(LookupError::Unknown)
    }
}

/// The first address of a list.
///
/// # Safety
/// `list` is null or of `getaddrinfo`.
#[allow(unsafe_code, reason = "a list of the C library")]
unsafe fn first(list: *const libc::addrinfo) -> Option<IpAddr> {
    // SAFETY: as the caller says; the family tells what the address is.
    unsafe {
        let entry = list.as_ref()?;
        match entry.ai_family {
            libc::AF_INET => {
                let v4 = entry.ai_addr.cast::<libc::sockaddr_in>().read_unaligned();
                Some(Ipv4Addr::from(v4.sin_addr.s_addr.to_ne_bytes()).into())
            }
            libc::AF_INET6 => {
                let v6 = entry.ai_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(Ipv6Addr::from(v6.sin6_addr.s6_addr).into())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_of_this_machine_are_found() {
        assert_eq!(address_of("192.0.2.7"), Ok(Ipv4Addr::new(192, 0, 2, 7).into()));
        assert_eq!(address_of("fd00::1").map(|it| it.is_ipv6()), Ok(true));
        assert_eq!(address_of("localhost").map(|it| it.is_loopback()), Ok(true));
    }

    #[test]
    fn what_cannot_be_a_name_is_unknown() {
        assert_eq!(address_of("a\0b"), Err(LookupError::Unknown));
        assert_eq!(address_of(&"a".repeat(300)), Err(LookupError::Unknown));
    }
}
