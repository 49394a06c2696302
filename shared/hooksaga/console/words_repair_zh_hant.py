"""Traditional Chinese catalogue: retry, resend, bulk operations, and secrets and addresses from another system."""

REPAIR_WORDS: dict[str, str] = {
    "resend": "重送",
    "Resend": "重送",
    "Resend this delivery": "重送此投遞",
    "Resend many": "批次重送投遞",
    "Retry now": "立即重試",
    "resent from saga {id}": "由 saga {id} 重送",
    "The deliveries that waited for a retry are tried now.": "等待重試的投遞已立即重試。",
    "The operation stopped by itself: nearly all of its deliveries fail.": "作業已自動停止：幾乎所有投遞都失敗。",
    "Fix the endpoint, then start the same operation again for the rest.": "請先修復端點，再重新開始相同的作業以處理其餘項目。",
    "nearly all failed": "幾乎全部失敗",
    "delivered": "已投遞",
    "failed again": "再次失敗",
    "under way": "進行中",
    "under way, {count} waiting for a retry": "進行中，其中 {count} 筆等待重試",
    "Your own signing secret": "自訂簽章密鑰",
    "whsec_ and base64 of 24 to 64 bytes. Default: a random one": "whsec_ 加上 24 至 64 位元組的 base64。預設：隨機產生",
    "Verified": "已驗證",
    "without a challenge, because you vouch for the address": "不經驗證請求，由您擔保此位址",
    "Reason for that": "擔保原因",
    "kept on record": "會留下紀錄",
    "Verified without a challenge, by key {id}.": "未經驗證請求，由金鑰 {id} 擔保。",
    "Bulk operations": "批次作業",
    "Requeue or resend many deliveries at a given rate, in turn for each subscription.": (
        "以指定速率重送大量死信或投遞，並在各訂閱之間輪流。"
    ),
    "New bulk resend": "新增投遞批次重送",
    "Result": "結果",
    "Sends the newest delivery of each event again if it ended in this time, whatever its result was. "
    "The endpoint gets the same webhook-id.": (
        "重送每個事件在此期間結束的最新一次投遞，無論成功或失敗。端點會收到相同的 webhook-id。"
    ),
    "An empty field matches all. Counting sends nothing; you start the operation afterwards.": (
        "空白欄位代表全部。試算筆數不會送出任何內容，之後再開始作業。"
    ),
    "{matched} deliveries of {subscriptions} subscriptions match.": "符合 {subscriptions} 個訂閱的 {matched} 筆投遞。",
    "The operation takes at least about {time}.": "此作業至少需要約 {time}。",
}
