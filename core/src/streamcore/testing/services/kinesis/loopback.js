// Preloaded into Node: every server listens on loopback only, whatever address it asks for.
"use strict";
const net = require("net");
const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (first, ...rest) {
  if (first !== null && typeof first === "object") {
    return listen.call(this, { ...first, host: "127.0.0.1" }, ...rest);
  }
  if (typeof rest[0] === "string") rest.shift();
  return listen.call(this, first, "127.0.0.1", ...rest);
};
