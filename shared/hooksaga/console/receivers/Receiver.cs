// Run in a project of `dotnet new web`, as its Program.cs: WEBHOOK_SECRET=whsec_... dotnet run
using System.Globalization;
using System.Security.Cryptography;
using System.Text;
using System.Text.Json;

const int toleranceSeconds = 300;
var secret = Environment.GetEnvironmentVariable("WEBHOOK_SECRET") ?? "";
var key = Convert.FromBase64String(secret.Replace("whsec_", ""));
var port = Environment.GetEnvironmentVariable("PORT") ?? "8000";
var app = WebApplication.Create(args);

// Whether one of the signatures is right, and the time is near. body: the bytes as they arrived.
bool IsGenuine(IHeaderDictionary headers, byte[] body)
{
    string id = headers["webhook-id"].ToString(), sentAt = headers["webhook-timestamp"].ToString();
    if (id == "" || !long.TryParse(sentAt, NumberStyles.None, CultureInfo.InvariantCulture, out var seconds))
    {
        return false;
    }
    if (Math.Abs(DateTimeOffset.UtcNow.ToUnixTimeSeconds() - seconds) > toleranceSeconds)
    {
        return false;
    }
    byte[] signed = [.. Encoding.UTF8.GetBytes($"{id}.{sentAt}."), .. body];
    var expected = Encoding.UTF8.GetBytes("v1," + Convert.ToBase64String(HMACSHA256.HashData(key, signed)));
    return headers["webhook-signature"].ToString().Split(' ')
        .Any(one => CryptographicOperations.FixedTimeEquals(expected, Encoding.UTF8.GetBytes(one)));
}

app.MapPost("/hooks", async (HttpRequest request) =>
{
    using var stream = new MemoryStream();
    await request.Body.CopyToAsync(stream);
    var body = stream.ToArray();
    if (!IsGenuine(request.Headers, body))
    {
        return Results.StatusCode(400);
    }
    var content = JsonDocument.Parse(body).RootElement;
    if (content.ValueKind == JsonValueKind.Object && content.TryGetProperty("type", out var type)
        && type.ValueKind == JsonValueKind.String && type.GetString() == "subscription.verification")
    {
        return Results.Text(content.GetProperty("challenge").GetString());
    }
    // Skip an id that you have seen; else store the event.
    Console.WriteLine("{0} {1}", request.Headers["webhook-id"], content);
    return Results.StatusCode(204);
});
app.Run($"http://*:{port}");
