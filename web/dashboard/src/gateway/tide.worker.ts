// Holds one connection to the gateway for all tabs of the browser. Its name is the URL
// of the gateway, so that two gateways on one origin have two workers.
import { serveTabs } from '@watchtide/client/shared';

serveTabs(self.name);
