// Holds one connection to the gateway for all tabs of the browser in which the same user
// is signed in. Its name is the URL of the gateway, so that two gateways on one origin
// have two workers, and the tag of the user's session if there are sessions.
import { serveTabs } from '@watchtide/client/shared';

const [gateway = ''] = self.name.split('#');
serveTabs(gateway);
