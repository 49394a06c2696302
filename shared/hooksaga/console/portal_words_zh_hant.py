"""Traditional Chinese catalogue of the portal, and of the form of its links."""

PORTAL_WORDS: dict[str, str] = {
    "Webhooks": "Webhook",
    "Endpoint": "端點",
    "Endpoints": "端點",
    "Endpoint {id}": "端點 {id}",
    "Guide": "接收說明",
    "Content": "內容",
    "Action": "操作",
    "The pages are unavailable for a moment": "頁面暫時無法使用",
    "Number of this request, for support:": "此請求的編號，供客服查詢：",
    "Filters in use: {count}": "使用中的篩選條件：{count}",
    # Endpoints
    "Addresses of your systems that receive events.": "您的系統用來接收事件的位址。",
    "Add an endpoint": "新增端點",
    "{count} deliveries have failed for good since the failures began.": "自開始失敗以來，有 {count} 筆投遞最終失敗。",
    "switched off": "已停用",
    "switched off automatically": "系統已自動停用",
    "not known yet": "尚未得知",
    "waiting, as the endpoint asked": "依端點要求等待",
    "held back after many failures": "連續失敗，暫緩傳送",
    "No endpoint receives events of this type.": "沒有端點接收此類型的事件。",
    "Show all endpoints": "顯示所有端點",
    "You have no endpoint yet.": "您還沒有端點。",
    "Add the address of your server. It then gets a signed POST request for each event of the types that you choose.": (
        "請新增您伺服器的位址。您所選類型的每個事件，都會以附簽章的 POST 請求送達。"
    ),
    "Add your first endpoint": "新增第一個端點",
    "See the event types": "查看事件類型",
    "How to receive events": "如何接收事件",
    "The endpoint was changed.": "已修改端點。",
    "The endpoint answered correctly and is verified. Send a test event next.": (
        "端點已正確回應並完成驗證。接著請傳送測試事件。"
    ),
    "The endpoint is active.": "端點已啟用。",
    "The endpoint is switched off.": "端點已停用。",
    "The endpoint is paused.": "端點已暫停。",
    "Events are sent again.": "已恢復傳送事件。",
    "Events are sent again. Those that waited are failed deliveries now.": (
        "已恢復傳送事件。先前等待中的事件列為失敗的投遞。"
    ),
    "What waited for a retry is sent now.": "等待重試的事件已立即傳送。",
    "The signing secret is shown only once. Store it where your server verifies signatures.": (
        "簽章密鑰只顯示這一次，請保存在您的伺服器驗證簽章的地方。"
    ),
    "How to verify signatures": "如何驗證簽章",
    "It receives no events until it has answered a verification request. Your server answers it with the challenge that "
    "it contains; then press Verify.": (
        "完成驗證之前不會收到事件。您的伺服器須以驗證請求中的 challenge 回應，然後請按「驗證」。"
    ),
    "How to answer": "如何回應",
    "Switched off automatically, because it answered 410 (gone).": "端點回應 410（已移除），系統已自動停用。",
    "Switched off automatically, because it only failed for days.": "端點連續數天失敗，系統已自動停用。",
    "Correct your server, switch the endpoint on, and send the failed deliveries again.": (
        "請修正您的伺服器、啟用端點，再重送失敗的投遞。"
    ),
    "If that goes on, it is switched off at": "若持續失敗，系統將於以下時間停用端點：",
    "Event types:": "事件類型：",
    "delivered in 24 h": "24 小時內投遞成功",
    "failed attempts in 24 h": "24 小時內失敗的嘗試",
    "usual response time": "一般回應時間",
    "JSON. Only this endpoint receives it, as a test event of type {event_type}.": (
        "JSON。只會送到此端點，事件類型為 {event_type}，並標示為測試事件。"
    ),
    "Nothing was sent to it yet. Send a test event to see how it arrives.": "尚未傳送任何內容。請傳送測試事件試試看。",
    "While it is paused, its events are kept and wait.": "暫停期間會保留事件，恢復後再傳送。",
    "Sending": "傳送",
    "Sent again at": "恢復傳送時間：",
    "Resume and send {count} waiting": "恢復，並傳送等待中的 {count} 筆",
    "Resume without {count} waiting": "恢復，但不傳送等待中的 {count} 筆",
    "Without them: they become failed deliveries, which you can send again.": "不傳送的事件會列為失敗的投遞，之後可以重送。",
    "Replace the secret": "更換密鑰",
    "Switch off or delete": "停用或刪除",
    "Switch off": "停用",
    "Switch on": "啟用",
    "The endpoint never receives events again. What was sent to it stays listed.": (
        "端點不會再收到事件。先前的傳送紀錄仍會保留。"
    ),
    # The form of an endpoint
    "Change endpoint {id}": "修改端點 {id}",
    "https:// URL of your server that receives the events": "您的伺服器接收事件的 https:// 網址",
    "All event types": "所有事件類型",
    "future ones too": "包含日後新增的類型",
    "Descriptions and samples of all event types": "所有事件類型的說明與範例",
    "Other types": "其他類型",
    "Names of event types": "事件類型名稱",
    "separated by commas; for example order.created, invoice.* or *": "以逗號分隔，例如 order.created、invoice.* 或 *",
    "a note for yourself": "供您自己辨識",
    "More settings": "更多設定",
    "for each event. Default: that of the sender": "每個事件的上限。預設：由傳送端決定",
    "Wait before the first retry (seconds)": "首次重試前的等待（秒）",
    "It doubles with each retry. Default: that of the sender": "每次重試加倍。預設：由傳送端決定",
    "Timeout of an attempt (seconds)": "每次嘗試的逾時（秒）",
    "Default: that of the sender": "預設：由傳送端決定",
    "Requests at the same time": "同時的請求數",
    "Rate limit: requests": "速率限制：請求數",
    "Longest wait of an event (seconds)": "事件最長的等待時間（秒）",
    "In order": "依序傳送",
    "events with the same key one after the other, as they happened": "相同鍵值的事件依發生順序逐一傳送",
    "Hold back after failures": "失敗後暫緩傳送",
    "after 10 failures in a row, try one event now and then until it succeeds": (
        "連續失敗 10 次後，只偶爾試送一個事件，直到成功為止"
    ),
    "of the requests": "請求的格式",
    "the content alone": "僅內容",
    "Add": "新增",
    # Deliveries
    "Each request that was sent to your endpoints, and its answer.": "傳送到您端點的每個請求與回應。",
    "Find an event": "尋找事件",
    "Event id, or the value of an attribute": "事件 ID，或屬性的值",
    "Number of the endpoint": "端點編號",
    "Status of the answer": "回應狀態",
    "Cause of failure": "失敗原因",
    "None of the newest deliveries matches. Older ones exist.": "最新的投遞中沒有符合的；還有更舊的紀錄。",
    "No matching deliveries.": "沒有符合的投遞。",
    "Show all deliveries": "顯示所有投遞",
    "Nothing was sent yet.": "尚未傳送任何內容。",
    "Each event that is sent to your endpoints is listed here. To see one, send a test event from the page of an "
    "endpoint.": "傳送到您端點的每個事件都會列在這裡。您可以在端點的頁面傳送測試事件。",
    "Go to your endpoints": "前往您的端點",
    "first attempt": "首次嘗試",
    "Send again": "重送",
    "Sent again": "已重送",
    "sent again": "已重送",
    "sent afterwards": "補送",
    "Send the chosen ones again": "重送選取的項目",
    "Sent again: {chosen}.": "已重送 {chosen} 筆。",
    "Sent again: {started} of {chosen}. The others were sent again before, have not ended, or their endpoint is switched "
    "off.": "{chosen} 筆中已重送 {started} 筆。其餘先前已重送、尚未結束，或其端點已停用。",
    "Your server closed the connection without a response. The request was sent again over a new connection.": (
        "您的伺服器未回應就關閉連線，因此已透過新連線重送這個請求。"
    ),
    # Failed deliveries
    "Failed delivery": "失敗的投遞",
    "Failed deliveries": "失敗的投遞",
    "Events that did not arrive after all attempts. When your server works again, send them again.": (
        "多次嘗試後仍未送達的事件。您的伺服器恢復正常後，可以重送。"
    ),
    "all attempts": "所有嘗試",
    "Show all failed deliveries": "顯示所有失敗的投遞",
    "No delivery has failed.": "沒有失敗的投遞。",
    "An event that your server does not accept is tried several times. If none succeeds, it is listed here, and you can "
    "send it again.": "您的伺服器未接受的事件會多次重試。若都不成功，就會列在這裡，您可以重送。",
    # One event
    "It is about to be sent.": "即將傳送。",
    "No delivery of this event is listed: no endpoint receives it, or it is older than what is kept.": (
        "沒有這個事件的投遞紀錄：沒有端點接收，或已超過保存期限。"
    ),
    "Endpoints that did not receive it ({count})": "未收到此事件的端點（{count}）",
    "added later": "之後才新增",
    "receives other event types": "接收其他事件類型",
    "test event of another endpoint": "其他端點的測試事件",
    "active only later": "之後才啟用",
    "filter did not match": "篩選條件不符",
    "the endpoint is paused": "端點已暫停",
    "at the limit of the endpoint": "已達端點的上限",
    "an earlier event of the same key comes first": "等待相同鍵值的前一個事件",
    "The content was erased.": "內容已依要求抹除。",
    "The content is no longer kept.": "內容已超過保存期限。",
    # Event types
    "What you can receive. Choose types when you add an endpoint.": "您可以接收的事件。新增端點時可以選擇類型。",
    "The event types are not described here.": "這裡沒有事件類型的說明。",
    "Your provider's documentation names them. An endpoint can also receive all types.": (
        "服務商的文件會列出名稱。端點也可以接收所有類型。"
    ),
    "The filter of an endpoint can name them.": "端點的篩選條件可以使用這些屬性。",
    "Place in the content": "在內容中的位置",
    "text": "文字",
    "number": "數字",
    "yes or no": "是或否",
    # Guide
    "Your server takes POST requests at an https:// address.": "您的伺服器在 https:// 位址接受 POST 請求。",
    "It verifies the signature of each request with the signing secret of the endpoint, and refuses a request whose "
    "signature is wrong or whose time is more than five minutes away from its own.": (
        "以端點的簽章密鑰驗證每個請求的簽章；簽章錯誤，或時間與伺服器相差超過五分鐘的請求，一律拒絕。"
    ),
    "It answers the verification request with the challenge that the request contains. Until then it gets no events.": (
        "以驗證請求中的 challenge 回應驗證請求。在此之前不會收到事件。"
    ),
    "It answers 2xx within {seconds} seconds, and does longer work afterwards. Any other answer is tried again later.": (
        "在 {seconds} 秒內回應 2xx，較久的工作請之後再做。其他回應都會稍後重試。"
    ),
    "The same event can arrive twice. Its webhook-id is the same each time: skip those that you have processed.": (
        "同一個事件可能送達兩次，webhook-id 每次都相同：請略過已處理過的 ID。"
    ),
    "A server in your language": "各程式語言的伺服器範例",
    "Each program needs only the standard library of its language, and reads the secret from the variable "
    "WEBHOOK_SECRET. Run it behind your HTTPS server.": (
        "每個程式只使用該語言的標準函式庫，並從環境變數 WEBHOOK_SECRET 讀取密鑰。請在您的 HTTPS 伺服器之後執行。"
    ),
    "It serves the path of {address}.": "程式使用 {address} 的路徑。",
    "Headers of a request": "請求的標頭",
    "the event, the same at each attempt": "事件的 ID，每次嘗試都相同",
    "seconds since 1970 of this attempt": "這次嘗試的時間（自 1970 年起的秒數）",
    "one signature for each valid secret, separated by spaces: v1, and base64 of HMAC-SHA256 over id.timestamp.body": (
        "每個有效密鑰各一個簽章，以空格分隔：v1, 加上 id.timestamp.body 的 HMAC-SHA256 的 base64"
    ),
    # The form of a link
    "of the header, buttons and links: #0b5cad": "標頭、按鈕與連結的顏色：#0b5cad",
    "Radius of corners (pixels)": "圓角半徑（像素）",
    "Default: 6": "預設：6",
    "Font": "字型",
    "Light or dark": "淺色或深色",
    "as the browser prefers": "依瀏覽器設定",
    "light": "淺色",
    "dark": "深色",
    "Language": "語言",
    "Header": "標頭",
    "no: only the navigation, for a page that has its own header": "否：只有導覽列，適合本身已有標頭的頁面",
}
