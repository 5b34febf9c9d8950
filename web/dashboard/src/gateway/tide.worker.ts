// One connection to the gateway for all tabs of the browser. It is told where the
// gateway is by its name, so that two gateways on one origin have two of them.
import { serveTabs } from '@watchtide/client/shared';

serveTabs(self.name);
