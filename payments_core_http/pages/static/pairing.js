// Pays from a wallet by WalletConnect, on the page that a payer asks for with it. The operator's script
// is loaded by this one. The wallet signs and sends; the chain is read at its public node.
"use strict";

(() => {
  const LIBRARY = "@walletconnect/universal-provider";
  const SCRIPT = "assets/walletconnect.js";
  const METHODS = ["eth_sendTransaction"];
  const EVENTS = ["accountsChanged", "chainChanged"];
  const OPENING_TIMEOUT_MS = 30_000; // until there is a code: the relay may not be reached
  const SCAN_TIMEOUT_MS = 290_000; // a little less than a wallet has to answer
  const ADDRESS = /^0x[0-9a-f]{40}$/i;
  const DECLINED = [5000, 5002]; // WalletConnect's numbers (CAIP-25)
  const STARTED = "started"; // the state of a page in the history of its tab
  // No other script can be loaded, and no other policy made.
  const policy = window.trustedTypes?.createPolicy("walletconnect", { createScriptURL: () => SCRIPT });
  // The link to this page was the press; the page that is loaded again waits for another.
  let isPressed = history.state !== STARTED;
  let loading = null; // a promise of the library
  let opening = null; // a promise of its provider: a second one would take the messages of the first
  let pairing = null; // a promise of a session that has no code yet: one that hangs may end later
  let session = null; // a promise of the wallet, once it is paired
  let attempt = null; // the newest one to pair, until it ends
  let code = null; // while the wallet has to scan it: its URI and its picture

  const load = (integrity) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.integrity = integrity;
    script.src = policy ? policy.createScriptURL(SCRIPT) : SCRIPT;
    script.onload = () => { resolve(window[LIBRARY]?.UniversalProvider); };
    script.onerror = reject;
    document.head.append(script);
  });

  const open = async () => {
    const { projectId, integrity, relayUrl, merchant } = document.getElementById("pairing").dataset;
    const metadata = { name: merchant, description: merchant, url: location.origin, icons: [] };
    loading ??= load(integrity);
    const Provider = await loading.catch((error) => {
      loading = null; // the next press loads it again
      throw error;
    });
    const provider = await Provider.init({ projectId, relayUrl, metadata });
    provider.on("display_uri", (uri) => {
      pairing = null;
      attempt?.show(uri);
    });
    provider.on("session_delete", () => { session = null; });
    return provider;
  };

  // Our service draws it. The URI lets its holder take part in the pairing: it is in no address.
  const draw = (uri) => new Promise((resolve) => {
    const request = new XMLHttpRequest();
    request.open("POST", `${location.pathname}/pairing-code`);
    request.setRequestHeader("Content-Type", "application/x-www-form-urlencoded");
    request.responseType = "document";
    request.onloadend = () => {
      const picture = request.response?.querySelector("svg");
      resolve(picture ? document.adoptNode(picture) : "");
    };
    request.send(new URLSearchParams({ uri }));
  });

  const show = () => {
    const place = document.getElementById("pairing-code");
    if (!place) return;
    place.hidden = code === null;
    if (code === null) return;
    place.firstElementChild.replaceChildren(code.picture);
    place.querySelector("a").href = code.uri;
  };

  const setCode = (changed) => {
    code = changed;
    show();
  };

  // The wallet, once it has scanned the code. Before there is a code, each failure is the same one.
  const connect = async () => {
    const { chainId } = document.getElementById("wallets").dataset;
    const { rpcUrl } = document.getElementById("pairing").dataset;
    const chain = `eip155:${chainId}`;
    const eip155 = { chains: [chain], methods: METHODS, events: EVENTS, rpcMap: { [chainId]: rpcUrl } };
    let timer = 0;
    let hasCode = false;
    let giveUp;
    const lateness = new Promise((_, reject) => { giveUp = () => reject(new payer.Stop("failed")); });
    const limit = (timeoutMs) => {
      clearTimeout(timer);
      timer = setTimeout(giveUp, timeoutMs);
    };
    const mine = attempt = {
      show: async (uri) => {
        hasCode = true;
        limit(SCAN_TIMEOUT_MS);
        const picture = await draw(uri);
        if (attempt !== mine) return; // it was scanned meanwhile
        setCode({ uri, picture });
        payer.say("scan");
      },
    };
    const pair = async () => {
      opening ??= open().catch((error) => {
        opening = null; // the next press opens it again
        throw error;
      });
      const provider = await opening;
      pairing ??= provider.connect({ optionalNamespaces: { eip155 } }).finally(() => { pairing = null; });
      return [provider, await pairing];
    };
    payer.say("load");
    limit(OPENING_TIMEOUT_MS);
    try {
      const [provider, paired] = await Promise.race([pair(), lateness]);
      payer.say("connect");
      const accounts = paired.namespaces.eip155?.accounts ?? [];
      const [account] = accounts.filter((one) => one.startsWith(`${chain}:`));
      if (!account) throw new payer.Stop("network");
      const address = account.slice(chain.length + 1);
      if (!ADDRESS.test(address)) throw new payer.Stop("failed");
      return { provider, chain, address, chainNumber: `0x${BigInt(chainId).toString(16)}` };
    } catch (error) {
      if (hasCode) throw error;
      throw new payer.Stop("unloaded");
    } finally {
      clearTimeout(timer);
      attempt = null;
      setCode(null);
    }
  };

  // EIP-1193, of a wallet that is paired for one chain.
  const ask = async ({ method, params }) => {
    session ??= connect();
    try {
      const { provider, chain, address, chainNumber } = await session;
      if (method === "eth_requestAccounts") return [address];
      if (method === "eth_chainId") return chainNumber;
      const answer = await provider.request({ method, params }, chain);
      if (METHODS.includes(method)) leave(provider);
      return answer;
    } catch (error) {
      if (method === "eth_requestAccounts") session = null; // the next press pairs again
      throw DECLINED.includes(error?.code) ? Object.assign(new Error(), { code: payer.DECLINED }) : error;
    }
  };

  // It has sent what it was paired for.
  const leave = (provider) => {
    session = null;
    provider.disconnect().catch(() => {});
  };

  const wallet = payer.makeWallet("WalletConnect", { request: ask });
  payer.wallets.set(wallet.name, wallet);
  history.replaceState(STARTED, "");
  checkout.onShown(() => {
    show();
    if (isPressed && document.getElementById("pairing")) payer.pay(wallet);
    isPressed = false;
  });
})();
