// Run: WEBHOOK_SECRET=whsec_... java Receiver.java
import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.regex.Pattern;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Receiver {
    static final long TOLERANCE_SECONDS = 300;
    static final Pattern CHALLENGE =
        Pattern.compile("\\A\\{\"type\": \"subscription\\.verification\", \"challenge\": \"([^\"]+)\"}\\z");

    /** Whether one of the signatures is right, and the time is near. body: the bytes as they arrived. */
    static boolean isGenuine(byte[] key, Headers headers, byte[] body) throws GeneralSecurityException {
        String id = headers.getFirst("webhook-id");
        String sentAt = headers.getFirst("webhook-timestamp");
        String given = headers.getFirst("webhook-signature");
        if (id == null || given == null || sentAt == null || !sentAt.matches("[0-9]{1,12}")) {
            return false;
        }
        if (Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(sentAt)) > TOLERANCE_SECONDS) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        mac.update((id + "." + sentAt + ".").getBytes(StandardCharsets.UTF_8));
        String expected = "v1," + Base64.getEncoder().encodeToString(mac.doFinal(body));
        for (String one : given.split(" ")) {
            if (MessageDigest.isEqual(expected.getBytes(StandardCharsets.UTF_8), one.getBytes(StandardCharsets.UTF_8))) {
                return true;
            }
        }
        return false;
    }

    static void answer(HttpExchange exchange, int status, byte[] text) throws IOException {
        exchange.sendResponseHeaders(status, text.length == 0 ? -1 : text.length);
        exchange.getResponseBody().write(text);
        exchange.close();
    }

    public static void main(String[] arguments) throws IOException {
        byte[] key = Base64.getDecoder().decode(System.getenv("WEBHOOK_SECRET").replaceFirst("^whsec_", ""));
        int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "8000"));
        HttpServer server = HttpServer.create(new InetSocketAddress(port), 0);
        server.createContext("/hooks", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes();
            boolean genuine;
            try {
                genuine = isGenuine(key, exchange.getRequestHeaders(), body);
            } catch (GeneralSecurityException error) {
                throw new IOException(error);
            }
            if (!genuine) {
                answer(exchange, 400, new byte[0]);
                return;
            }
            String event = new String(body, StandardCharsets.UTF_8);
            var probe = CHALLENGE.matcher(event);
            if (probe.find()) {
                answer(exchange, 200, probe.group(1).getBytes(StandardCharsets.UTF_8));
                return;
            }
            String id = exchange.getRequestHeaders().getFirst("webhook-id");
            System.out.println(id + " " + event); // Skip an id that you have seen; else store the event.
            answer(exchange, 204, new byte[0]);
        });
        server.start();
    }
}
