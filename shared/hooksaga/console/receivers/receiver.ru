# Run: WEBHOOK_SECRET=whsec_... rackup receiver.ru
require "json"
require "openssl"

KEY = ENV.fetch("WEBHOOK_SECRET").delete_prefix("whsec_").unpack1("m0")
TOLERANCE_SECONDS = 300

# Whether one of the signatures is right, and the time is near. body: the bytes as they arrived.
def genuine?(id, sent_at, signatures, body)
  return false if id.empty? || !sent_at.match?(/\A[0-9]{1,12}\z/)
  return false if (Time.now.to_i - sent_at.to_i).abs > TOLERANCE_SECONDS

  signed = "#{id}.#{sent_at}.".b + body.b
  expected = "v1," + [OpenSSL::HMAC.digest("SHA256", KEY, signed)].pack("m0")
  signatures.split(" ").any? { |one| OpenSSL.secure_compare(expected, one) }
end

run(lambda do |env|
  next [404, {}, []] unless env["REQUEST_METHOD"] == "POST" && env["PATH_INFO"] == "/hooks"

  id, sent_at, signatures = %w[ID TIMESTAMP SIGNATURE].map { |name| env.fetch("HTTP_WEBHOOK_#{name}", "") }
  body = env["rack.input"].read
  next [400, {}, []] unless genuine?(id, sent_at, signatures, body)

  event = JSON.parse(body)
  if event.is_a?(Hash) && event["type"] == "subscription.verification"
    next [200, { "content-type" => "text/plain" }, [event["challenge"]]]
  end
  puts "#{id} #{event}" # Skip an id that you have seen; else store the event.
  [204, {}, []]
end)
