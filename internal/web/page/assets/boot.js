// Loads the page, whose files have names that change with their content. This one's name
// does not change, and browsers ask for it again each time. While several replicas are
// updated, the next file may be asked of one that does not have it.
import('./index-B4sdE7bV.js').catch(() => {
  const notice = document.createElement('p');
  notice.role = 'alert';
  const reload = document.createElement('button');
  reload.textContent = 'Reload';
  reload.onclick = () => location.reload();
  notice.append('This page could not be loaded: the gateway is being updated, or does not answer. ', reload);
  document.getElementById('app').replaceChildren(notice);
});
