//! The TCP profiles of a scenario's loads, each once.

use std::sync::Arc;

use weir_scenario::{ScenarioError, TcpSettings};
use weir_tcp::Profile;

/// Profiles that connections share: each packet asks its connection's, which then is near the processor.
#[derive(Default)]
pub(crate) struct Profiles(Vec<Arc<Profile>>);

impl Profiles {
    /// The profile of these settings.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn of(&mut self, settings: &TcpSettings) -> Result<Arc<Profile>, ScenarioError> {
        let profile = Profile::of(settings)?;
        if let Some(known) = self.0.iter().find(|known| ***known == *profile) {
            return Ok(Arc::clone(known));
        }
        self.0.push(Arc::clone(&profile));
        Ok(profile)
    }
}
