# Serves the Rack application of a .ru file, one request per connection, without the gems rack and webrick.
require "socket"
require "stringio"

$app = nil
def run(app)
  $app = app
end
load ARGV[0]

server = TCPServer.new("127.0.0.1", ENV.fetch("PORT").to_i)
loop do
  client = server.accept
  method, target = client.gets.to_s.split
  env = { "REQUEST_METHOD" => method, "PATH_INFO" => target.to_s.split("?").first }
  while (line = client.gets) && line != "\r\n"
    name, value = line.chomp.split(": ", 2)
    env["HTTP_" + name.upcase.tr("-", "_")] = value
  end
  env["rack.input"] = StringIO.new(client.read(env.fetch("HTTP_CONTENT_LENGTH", "0").to_i))
  status, _headers, parts = $app.call(env)
  text = parts.join
  client.write("HTTP/1.1 #{status} .\r\ncontent-length: #{text.bytesize}\r\nconnection: close\r\n\r\n#{text}")
  client.close
end
